"""Python that models expect to work: built-in names, other names of arguments, usual modules."""

from __future__ import annotations

import pytest
from scripted_agents import agent, code, helper

from ck_pro import CodeExecutor, StopTool
from ck_pro.session import Status
from ck_pro.session.observed import observation_text
from ck_web.tools import WebStopTool

pytestmark = pytest.mark.worker


def test_type_with_one_value_is_the_built_in() -> None:
    typed: list[tuple[object, str]] = []

    def type(  # noqa: A001 - the name of the web function
        id: object, content: str, enter: bool = True
    ) -> str:
        typed.append((id, content))
        return "typed"

    script = code(
        "print(type(3).__name__, type('x') is str, type(3, 'a'), type(id=4, content='b'))"
    )
    a = agent(script, code("stop('ok')"), tools=[type, StopTool()])
    session = a.run("t")
    assert session.steps[0]["action"]["observation"] == "int True typed typed"
    assert typed == [(3, "a"), (4, "b")]


@pytest.mark.parametrize("tool", [StopTool(), WebStopTool()])
@pytest.mark.parametrize(
    "call",
    ["output='42', log='l'", "output='42', summary='l'", "answer='42', log='l'", "'42', 'l'"],
)
def test_stop_accepts_the_names_of_both_agents(tool: StopTool | WebStopTool, call: str) -> None:
    session = agent(code(f"stop({call})"), tools=[tool]).run("t")
    assert session.status is Status.DONE
    assert session.final_results == {"output": "42", "log": "l"}


def test_two_names_of_one_argument_are_an_error() -> None:
    a = agent(code("stop(output='1', answer='2')"), code("stop('3')"))
    session = a.run("t")
    assert "TypeError" in str(session.steps[0]["action"]["observation"])
    assert session.final_results["output"] == "3"


def test_os_and_sys_need_no_import() -> None:
    a = agent(code("print(os.path.basename('/a/b'), sys.byteorder)"), code("stop('ok')"))
    assert a.run("t").steps[0]["action"]["observation"].startswith("b ")


def typing_executor() -> CodeExecutor:
    """Return an executor with a function named `type`, as the web agent has it."""

    def type(id: object, content: str, enter: bool = True) -> str:  # noqa: A001
        return f"typed {content}"

    return CodeExecutor(functions={"type": type})


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        (
            "isinstance(int, type), isinstance(3, (type, int)), isinstance(3, type)",
            "True True False",
        ),
        ("issubclass(type(int), type), type(3) == int, type(int) == type", "True True True"),
        ("type('A', (), {'x': 1}).x, type.__name__, type.mro(bool)[1].__name__", "1 type int"),
        ("type('Name', 'a', False), type(3, content='b')", "typed a typed b"),
        ("(type | None) == (None | type), type[int] == builtins.type[int]", "True True"),
        ("copy.deepcopy(type) is type, {type: 1}[type], callable(type)", "True 1 True"),
    ],
)
def test_a_function_named_type_also_works_as_the_class(source: str, printed: str) -> None:
    with typing_executor() as executor:
        result = executor.run(f"import builtins, copy\nprint(*({source}))")
        assert result.error is None
        assert (
            result.output.strip().replace("<function type, and <class 'type'>>", "type") == printed
        )


def test_a_class_may_derive_from_a_shadowed_class() -> None:
    source = """
class Meta(type):
    def __call__(cls): return super().__call__()
class Plain(metaclass=Meta): ...
class Direct(metaclass=type): ...
def kind_of(x: type | None) -> "type": return type(x)
print(isinstance(Plain(), Plain), type(Plain) is Meta, type(Direct).__name__, kind_of(1).__name__)
"""
    with typing_executor() as executor:
        assert executor.run(source).output == "True True type int\n"


@pytest.mark.parametrize(
    "imports",
    ["from tools import look_up", "from tools import *", "import tools; look_up = tools.look_up"],
)
def test_the_functions_can_be_imported_from_tools(imports: str) -> None:
    with CodeExecutor(functions={"look_up": lambda word: word.upper()}) as executor:
        result = executor.run(f"look_up = None\n{imports}\nprint(look_up('a'))")
        assert (result.error, result.output) == (None, "A\n")
        missing = executor.run("from tools import nothing").error
        assert missing is not None and missing.type == "ImportError"


def test_a_module_tools_of_the_code_comes_first() -> None:
    with CodeExecutor(functions={"look_up": lambda word: word.upper()}) as executor:
        assert executor.run("import tools").error is None
        executor.run("open('tools.py', 'w').write('def parse(): return 7')")
        result = executor.run("from tools import parse\nprint(parse())")
        assert (result.error, result.output) == (None, "7\n")


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("print(r, 'n', sep=' => ', end=';')\nprint('d')", "{r} => n;d"),
        ("print(r)\nprint('a', 'b', sep='-', end='|')\nprint('c')", "{r}\na-b|c"),
        ("print('v:', r, end='')\nprint('e', end='')", "v: {r}e"),
        ("print(r, r, sep='')", "{r}{r}"),
        ("print(r, [r], sep='\\n', end='.')", "{r}\n[{r}]."),
    ],
)
def test_print_keeps_sep_and_end_around_a_sub_agents_result(statement: str, text: str) -> None:
    sub = helper(code("stop(output='42', log='l')"))
    a = agent(code(f"r = helper('x')\n{statement}"), code("stop(1)"), sub_agents=[sub])
    session = a.run("t")
    seen = observation_text(session.steps[0]["action"]["observation"])
    assert seen == text.replace("{r}", "{'output': '42', 'log': 'l'}")
