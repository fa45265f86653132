"""KwargsInitializable: declared, strict, merging."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import pytest
from pydantic import Field, SecretStr

from ck_pro.config import KwargsInitializable
from ck_pro.exceptions import ConfigError


class Model(KwargsInitializable):
    string_setting = "call_target"

    call_target: str = "manual"
    retries: int = 3
    call_kwargs: dict[str, Any] = {"temperature": 0}
    key: SecretStr | None = None


class Agent(KwargsInitializable):
    model: Model = Model(retries=9)
    spare: Model | None = None
    max_steps: Annotated[int, Field(ge=1)] = 10
    flag: bool = True
    names: list[str] = []
    copy: str = "a"  # names that other bases forbid
    json: int = 1


class Browser(Agent):
    max_steps = 16
    model = {"call_target": "gpt:web"}

    def __init__(self, **kwargs: Any) -> None:
        self.multimodal = Model(call_target="gpt:eyes")
        self.env_kwargs = {"port": 1}
        super().__init__(**kwargs)
        self.live = {}


class Main(Agent):
    browser: Browser = Browser(flag=False)


def test_defaults_of_parent_class_survive_a_partial_dict() -> None:
    main = Main(browser={"model": {"call_kwargs": {"seed": 1}}})
    model = main.browser.model
    assert (model.call_target, model.retries) == ("gpt:web", 9)
    assert model.call_kwargs == {"temperature": 0, "seed": 1}
    assert main.browser.flag is False
    assert main.browser.max_steps == 16


def test_string_means_the_string_setting_also_of_optional() -> None:
    assert Agent(model="gpt:x").model.retries == 9
    spare = Agent(spare="gpt:y").spare
    assert spare is not None and spare.call_target == "gpt:y"
    assert Agent(spare=None).spare is None


def test_attributes_before_and_after_super() -> None:
    web = Browser(multimodal={"retries": 1}, env_kwargs={"host": "h"})
    assert (web.multimodal.call_target, web.multimodal.retries) == ("gpt:eyes", 1)
    assert web.env_kwargs == {"port": 1, "host": "h"}
    assert web.live == {}
    assert Main(browser={"multimodal": "gpt:z"}).browser.multimodal.call_target == "gpt:z"


@pytest.mark.parametrize(
    ("kwargs", "name", "value"),
    [
        ({"flag": "False"}, "flag", False),
        ({"flag": "true"}, "flag", True),
        ({"max_steps": "7"}, "max_steps", 7),
        ({"copy": 3}, "copy", "3"),
        ({"names": ("a", "b")}, "names", ["a", "b"]),
    ],
)
def test_values_are_converted(kwargs: dict[str, Any], name: str, value: Any) -> None:
    assert getattr(Agent(**kwargs), name) == value


@pytest.mark.parametrize(
    ("cls", "kwargs", "message"),
    [
        (Agent, {"max_step": 1}, "Agent: unknown setting 'max_step' (did you mean 'max_steps'?)"),
        (Agent, {"names": "abc"}, "Agent.names: Input should be a valid list (got 'abc')"),
        (Agent, {"max_steps": 0}, "Agent.max_steps: Input should be greater than or equal to 1"),
        (Agent, {"flag": "maybe"}, "Agent.flag: Input should be a valid boolean"),
        (Main, {"browser": {"model": {"retrys": 1}}}, "Main.browser.model: unknown setting"),
        (Main, {"browser": {"model": {"retries": "x"}}}, "Main.browser.model.retries: "),
        (Agent, {"model": 3}, "Agent.model: Input should be an instance of Model"),
        (Agent, {"model": None}, "Agent.model: "),
        (Browser, {"_preset_names": ()}, "unknown setting '_preset_names'"),
    ],
)
def test_misfits_are_told_with_their_place(
    cls: type[Agent], kwargs: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        cls(**kwargs)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_objects_share_no_mutable_defaults() -> None:
    one, other = Agent(), Agent()
    one.names.append("x")
    one.model.call_kwargs["y"] = 1
    assert other.names == [] and other.model.call_kwargs == {"temperature": 0}


def test_defaults_that_cannot_be_copied_are_shared() -> None:
    lock = threading.Lock()

    class Desk:
        def __init__(self) -> None:
            self.lock = lock

    class Service(Model):
        desk: Any = Desk()

    class Shop(Agent):
        service: Service = Service()
        services: list[Any] = [Service()]

    one, other = Shop(service={"retries": 1}), Shop()
    assert one.service.desk is other.service.desk is Service.desk
    assert other.service.retries == 3
    one.service.call_kwargs["y"] = one.services[0].call_kwargs["y"] = 1
    assert other.service.call_kwargs == other.services[0].call_kwargs == {"temperature": 0}


def test_an_object_is_taken_as_it_is() -> None:
    model = Model()
    assert Agent(model=model).model is model


def test_to_dict_round_trips_without_secrets_and_runtime_objects() -> None:
    agent = Agent(model={"key": "hush-hush"}, names=["n"])
    agent.model.call_kwargs["callback"] = print
    written = agent.to_dict()
    assert "hush" not in repr(written) and "key" not in written["model"]
    assert written["model"]["call_kwargs"] == {"temperature": 0}
    assert Agent(**written).to_dict() == written


def test_a_required_setting_must_be_given() -> None:
    class Needs(KwargsInitializable):
        path: str

    with pytest.raises(ConfigError, match="the setting 'path' must be given"):
        Needs()
    assert Needs(path="p").path == "p"


def test_a_subclass_may_narrow_a_type_with_its_own_default() -> None:
    class Wide(KwargsInitializable):
        n: int | None = None

    class Narrow(Wide):
        n: int = 5

    assert Narrow().n == 5
    with pytest.raises(ConfigError):
        Narrow(n=None)


def test_attributes_before_super_are_converted() -> None:
    class Preset(Agent):
        def __init__(self, **kwargs: Any) -> None:
            self.model = "gpt:pre"
            self.flag = "False"
            super().__init__(**kwargs)

    made = Preset(model={"retries": 2})
    assert (made.model.call_target, made.model.retries, made.flag) == ("gpt:pre", 2, False)


@pytest.mark.parametrize(("given", "value"), [("3", 3), (2.5, 2.5), ("2.5", 2.5), (7, 7)])
def test_a_preset_number_takes_any_number(given: Any, value: float) -> None:
    class Preset(KwargsInitializable):
        def __init__(self, **kwargs: Any) -> None:
            self.delay = 2
            super().__init__(**kwargs)

    made = Preset(delay=given).delay
    assert made == value and type(made) is type(value)
    with pytest.raises(ConfigError, match=r"Preset\.delay: "):
        Preset(delay="soon")


def test_secrets_in_plain_settings_are_not_written() -> None:
    class Service(KwargsInitializable):
        api_key: str = "hush"
        key: int = 3

    assert Service().to_dict() == {"key": 3}
    url = "http://bob:hush2@host/x?api_key=hush4&v=1&sig=hush5#a"
    kwargs = {"api_key": "hush1", "url": url, "Authorization": "hush3"}
    assert Agent(model={"call_kwargs": kwargs}).to_dict()["model"]["call_kwargs"] == {
        "temperature": 0,
        "url": "http://***@host/x?api_key=***&v=1&sig=***#a",
    }


def test_classes_made_inside_functions_may_name_each_other() -> None:
    class Inner(KwargsInitializable):
        n: int = 1

    class Outer(KwargsInitializable):
        inner: Inner = Inner(n=2)

    assert Outer(inner={"n": "5"}).inner.n == 5


def test_an_attribute_without_a_type_is_not_a_setting() -> None:
    class Plain(KwargsInitializable):
        speed = 3

    with pytest.raises(ConfigError, match=r"'speed' is not a setting.*`speed: int = "):
        Plain(speed=4)
