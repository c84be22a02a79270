"""A server that misbehaves byte by byte: raw asyncio sockets on loopback, one named play per fault.

A play is a list of acts, one per request; an act gets the exchange and writes whatever bytes it likes, when it likes.
After the last act the last one is played again. The address names the play, so one server can offer all of them::

    async with FaultServer({"burst": [status(503), status(503), good]}) as server:
        llm = OpenAICompatible("m", base_url=server.address("burst"))

``python -m tests.faults.server`` serves every scenario of `tests.faults.matrix` until it is interrupted, so that any
client can be tried against them, on any of the four wires; there a play begins anew after its last act.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tests.faults.speech import SPEECH, SPEECHES, wire_of
from tests.support.connections import ByteServer, Connection, Exchange, HungUp, Recorded, with_length

Act: TypeAlias = Callable[[Exchange], Awaitable[None]]
"""What happens with one request."""


@dataclass
class _Play:
    acts: Sequence[Act]
    requests: list[Recorded] = field(default_factory=list)


class FaultServer(ByteServer):
    """Serves plays by name; see the module.

    Args:
        plays: the acts of each play.
        again: a play begins anew after its last act, instead of repeating that one.
        is_mute: it accepts connections, and says nothing.

    Attributes:
        busy: how many exchanges are under way.
        failures: what an act raised, beside its client's going away: a fault of the test.
    """

    def __init__(
        self,
        plays: Mapping[str, Sequence[Act]],
        *,
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        again: bool = False,
        is_mute: bool = False,
    ) -> None:
        super().__init__(port=port, tls=tls, is_mute=is_mute)
        self._again = again
        self.busy = 0
        self.failures: list[BaseException] = []
        self._plays = {name: _Play(acts) for name, acts in plays.items()}

    def address(self, play: str, *, scheme: str = "http", host: str = "127.0.0.1") -> str:
        """The base URL of a play."""
        return f"{scheme}://{host}:{self.port}/{play}/v1"

    def requests(self, play: str) -> list[Recorded]:
        """The requests of a play so far, in order of arrival."""
        return self._plays[play].requests

    async def _answer(self, request: Recorded, connection: Connection) -> bool:
        play = self._plays.get(request.path.split("/")[1])
        if play is None:
            await connection.send(with_length(b'{"error": {"message": "no such scenario"}}', 404))
            return True
        play.requests.append(request)
        count = len(play.requests)
        act = play.acts[(count - 1) % len(play.acts) if self._again else min(count, len(play.acts)) - 1]
        exchange = Exchange(request, count, connection, self)
        self.busy += 1
        self._changed.set()
        SPEECH.set(SPEECHES[wire_of(request.path)]())
        try:
            await act(exchange)
        except (HungUp, asyncio.CancelledError):
            raise
        except BaseException as error:
            self.failures.append(error)
            raise
        finally:
            self.busy -= 1
            self._changed.set()
        return exchange.keep


async def _serve_for_ever(port: int) -> None:
    from tests.faults.matrix import SCENARIOS

    plays = {scenario.name: scenario.acts for scenario in SCENARIOS if not scenario.tls}
    async with FaultServer(plays, port=port, again=True) as server:
        print(f"{len(plays)} scenarios, each at {server.address('NAME')}", flush=True)
        await asyncio.Event().wait()


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve every scenario, or list them."""
    from tests.faults.matrix import SCENARIOS

    parser = argparse.ArgumentParser(prog="python -m tests.faults.server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--list", action="store_true", help="the scenarios by name, and end")
    options = parser.parse_args(arguments)
    if options.list:
        for scenario in SCENARIOS:
            print(f"{scenario.name:32} {scenario.row:>5}  {scenario.fault}")
        return
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve_for_ever(options.port))


if __name__ == "__main__":
    main()
