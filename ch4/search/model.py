"""A language model that proposes: any endpoint that speaks OpenAI's protocol for chats, named in the environment.

    OPENAI_BASE_URL    as https://api.openai.com/v1, or http://localhost:8000/v1 for a server of your own
    OPENAI_API_KEY     sent to that address alone; may be missing for a server that asks for none
    OPENAI_MODEL       the model's name there

It is told the problem, the machine, the axes, what was measured and every failure so far. Its answer is parsed
strictly; the next request says what was wrong. After MOST_FAILURES useless answers in a row the search ends.
"""

import json
import os
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from common.pairs.user_error import UserError
from search.history import History, Remark
from search.proposers import ProposerError
from search.space import Configuration, Space, brief, name_of

TIMEOUT_S = 120.0
MOST_FAILURES = 3
MOST_SHOWN = 60  # of the measured, the best; failures are told all
MOST_BYTES = 1 << 20  # of an answer


class Useless(Exception):
    """An answer that proposes nothing; str() says why, in one line."""


class Model:
    """`about`: the problem and the machine in words."""

    def __init__(self, space: Space, about: str, timeout_s: float = TIMEOUT_S) -> None:
        self._space, self._about, self._timeout_s = space, about, timeout_s
        names = "OPENAI_BASE_URL", "OPENAI_MODEL"
        self._url, self._name = (os.environ.get(name, "") for name in names)
        if missing := [name for name in names if not os.environ.get(name)]:
            raise UserError(f"the model as proposer: {' and '.join(missing)} must be set in the environment")
        if not self._url.startswith(("http://", "https://")):
            raise UserError("OPENAI_BASE_URL must begin with http:// or https://")

    def propose(self, history: History, count: int) -> list[Configuration]:
        if len(history.names) >= len(self._space.valid):
            return []
        problem = ""
        for _ in range(MOST_FAILURES):
            try:
                return self._accepted(history, count, parse(self._ask(history, count)))
            except Useless as error:
                problem = str(error)
                history.add(Remark(problem))
        raise ProposerError(f"the model gave nothing to try, {MOST_FAILURES} times in a row; the last time: {problem}")

    def _accepted(self, history: History, count: int, proposed: list[Any]) -> list[Configuration]:
        """The proposals that can be tried; a remark for each of the others. Raises Useless if there are none."""
        tried, accepted = history.names, dict[str, Configuration]()
        for each in proposed[:count]:
            if why := self._space.problem_with(each) or "tried before" * (name_of(each) in tried):
                history.add(Remark(f"{json.dumps(each)[:200]}: {why}"))
            else:
                accepted[name_of(each)] = each
        if not accepted:
            raise Useless("no proposal could be tried")
        return list(accepted.values())

    def _ask(self, history: History, count: int) -> str:
        """The text of one answer. Raises Useless."""
        messages = [{"role": "user", "content": prompt(self._space, self._about, history, count)}]
        body = json.dumps({"model": self._name, "messages": messages}).encode()
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(f"{self._url.rstrip('/')}/chat/completions", body, headers)
        try:
            with _DIRECT.open(request, timeout=self._timeout_s) as reply:
                return content(reply.read(MOST_BYTES))
        except urllib.error.HTTPError as error:
            raise Useless(f"the endpoint answered with status {error.code} ({error.reason})") from None
        except (OSError, HTTPException) as error:
            slow = isinstance(getattr(error, "reason", error), TimeoutError)
            late = f"no answer within {self._timeout_s:g} s"
            raise Useless(late if slow else f"the endpoint cannot be reached ({error})") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """No redirects: the key is for one address."""


_DIRECT = urllib.request.build_opener(_NoRedirect)


class Message(Struct):
    content: str | None = None
    refusal: str | None = None


class Choice(Struct):
    message: Message


class Chat(Struct):
    """An answer of the protocol; it may say more."""

    choices: Annotated[list[Choice], Meta(min_length=1)]


class Proposal(Struct, forbid_unknown_fields=True):
    """All that a model may say."""

    configurations: list[Any]


def content(reply: bytes) -> str:
    """The text in an answer of the protocol. Raises Useless, also for a refusal."""
    try:
        message = msgspec.json.decode(reply, type=Chat).choices[0].message
    except (msgspec.MsgspecError, RecursionError):
        raise Useless("the endpoint's answer is not that of a chat") from None
    if message.refusal:
        raise Useless(f"the model refused: {message.refusal[:200]}")
    if not message.content or not message.content.strip():
        raise Useless("the model's answer is empty")
    return message.content


def parse(text: str) -> list[Any]:
    """The list in {"configurations": [...]}, which must be all that was said. Raises Useless."""
    try:
        return msgspec.json.decode(text, type=Proposal).configurations
    except msgspec.ValidationError:
        raise Useless('the answer must be {"configurations": [...]} and nothing else') from None
    except (msgspec.DecodeError, RecursionError):
        raise Useless(f"the answer is not JSON alone; it begins with {text.strip()[:80]!r}") from None


def prompt(space: Space, about: str, history: History, count: int) -> str:
    """All that the model is told."""
    best = [f"{trial.score:.4f}  {brief(trial.configuration)}" for trial in history.measured[:MOST_SHOWN]]
    failed = [f"{name_of(trial.configuration)}: {trial.outcome} ({trial.reason})" for trial in history.failures]
    example, remarks = json.dumps({"configurations": list(space.valid.values())[:1]}), history.of(Remark)
    lines = [
        f"Find the fastest configuration of a Triton kernel: {about}.",
        f"Each key and its values: {json.dumps(space.axes)}",
        f"Measured so far, best first (higher is better): {len(history.measured)}", *best,
        f"Failed so far: {len(failed)}", *failed,
        f"Refused so far: {len(remarks)}", *(remark.text for remark in remarks),
        f"Propose {count} configurations that were not tried. Answer with JSON alone, of this form: {example}",
    ]  # fmt: skip
    return "\n".join(lines)
