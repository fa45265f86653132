"""Fakes for tests of agents: a scripted model, a scripted environment, and a chat server with
faults. They replace patching.

>>> model = ScriptedLLM(["first reply", "second reply"])
>>> str(model([{"role": "user", "content": "Hello"}]))
'first reply'
"""

from ck_pro.testing.chat_server import ChatCall, FakeChatServer, Fault
from ck_pro.testing.fake_environment import FakeEnvironment
from ck_pro.testing.recorded_replies import CONTEXT_HEADERS, recorded_replies
from ck_pro.testing.scripted import ScriptedCall, ScriptedLLM

__all__ = [
    "CONTEXT_HEADERS",
    "ChatCall",
    "FakeChatServer",
    "FakeEnvironment",
    "Fault",
    "ScriptedCall",
    "ScriptedLLM",
    "recorded_replies",
]
