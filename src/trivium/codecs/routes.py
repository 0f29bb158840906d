"""The routes of a protocol over HTTP as rows, and the tree of them that is asked about each request.

In the path of a row "{name}" is one segment that is not empty, "{name}:word" one that ends so and has something in
front of that, "..." at the end whatever follows, if anything does, and "{name}..." the same, with a name for its first
segment. Where several rows fit, the one that says more literally goes before, segment by segment. Pure.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec

from trivium.codecs.path_segments import decoded
from trivium.types import reasons
from trivium.types.access import AccessScope, Endpoint
from trivium.types.described import DescribedArgument, DescribedBody, DescribedRoute, DescribedVerb
from trivium.types.error_info import ErrorInfo
from trivium.types.errors import Code, ServeError
from trivium.types.wire import Head, Target

ANY = "*"
"""Any method but OPTIONS."""

_REST = "..."
_VERSION = "version"


class HttpRoute(msgspec.Struct, frozen=True, gc=False):
    """Says what some methods ask for at a path; they have a space between them, and "*" is any but OPTIONS.

    The segment called `subject` is the target's model, the one called "version" its version; without a subject the
    target has no names. `verb`, `scope`, `takes_body` and `is_served` are the target's own. At a row without methods
    nothing is served, whatever other rows say that are less literal.
    """

    methods: str
    path: str
    verb: str = ""
    scope: AccessScope = AccessScope.MANAGE
    takes_body: bool = False
    is_served: bool = True
    subject: str = "model"


def with_slash(routes: Iterable[HttpRoute]) -> Iterator[HttpRoute]:
    """Yield each route, and the same with a slash behind its path."""
    for route in routes:
        yield route
        yield msgspec.structs.replace(route, path=f"{route.path}/")


def endpoints(routes: Iterable[HttpRoute]) -> Sequence[Endpoint]:
    """Return what these routes answer, as the table for people has it."""
    return tuple(
        Endpoint(method, _shown(route.path), route.scope)
        for route in routes
        for method in route.methods.split()
    )


def described(
    routes: Iterable[HttpRoute],
    verbs: Mapping[str, DescribedVerb],
    bodies: Mapping[str, DescribedBody] = {},
    arguments: Mapping[str, Sequence[DescribedArgument]] = {},
) -> tuple[DescribedRoute, ...]:
    """Return these routes with what `verbs` says of each, `bodies` of those that take one while others with their verb
    do not, and `arguments` of their queries. One that differs from another by a slash at its end alone is left out.
    """
    rows = [route for route in dict.fromkeys(routes) if route.methods]
    known = {(route.methods, route.path) for route in rows}
    found = []
    for route in rows:
        if route.path.endswith("/") and (route.methods, route.path[:-1]) in known:
            continue
        what = verbs[route.verb]
        if route.takes_body and route.verb in bodies:
            what = replace(what, body=bodies[route.verb])
        if route.verb in arguments:
            what = replace(what, arguments=arguments[route.verb])
        found.append(DescribedRoute(route.methods.split(), route.path, route.scope, str(route.verb), what))
    return tuple(found)


def prefixes(routes: Iterable[HttpRoute]) -> Sequence[str]:
    """Return the prefixes by which a listener finds the owner of these routes: see `types.listeners.Route`."""
    return tuple(dict.fromkeys(prefix_of(route.path) for route in routes if route.methods))


def prefix_of(path: str) -> str:
    """Return the prefix of a row's path."""
    return _prefix(path.rstrip("/").split("/")[1:])


def _prefix(segments: Sequence[str]) -> str:
    if not segments:
        return ""
    first, last = segments[0], segments[-1]
    ending = last.partition("}")[2]
    if last[:1] == "{" and ending not in ("", _REST):
        return f"{first}/...{ending}"
    return f".../{last}" if first[:1] == "{" else first


def _shown(path: str) -> str:
    return f"{path.rpartition('/')[0]}/{_REST}" if path.endswith(_REST) else path


class RouteRefusal(ServeError):
    """Refuses a path, or a method where those are there that `allow` lists. `say` makes its sentence once somebody asks
    for it, and so for nobody who is not let in; its reason says all that wires ask.
    """

    _message: str = ""

    def __init__(self, head: Head, allow: str, say: "Advice") -> None:
        code, reason = (Code.METHOD, reasons.NO_METHOD) if allow else (Code.NOT_FOUND, reasons.NO_ROUTE)
        super().__init__(code, "", info=ErrorInfo(reason, {"path": head.path, "allow": allow}))
        self._head = head
        self._allow = allow
        self._say = say

    @property
    def message(self) -> str:
        """Say what is wrong, and what there is."""
        if not self._message:
            self._message = self._say(self._head, self._allow)
        return self._message

    @message.setter
    def message(self, text: str) -> None:
        self._message = text

    def __str__(self) -> str:
        return self.message


Advice = Callable[[Head, str], str]
"""Makes the sentence that refuses a head where these methods are allowed; none where there is no such path."""


class _Reply(msgspec.Struct, frozen=True, gc=False):
    """Answers one method at one route: by the target itself, where it has no name in it, or by what it is made of. The
    names are the segments of these numbers; the first segment of every path is empty. `is_odd`: the model, or the
    version, is a segment without its ending of so many letters, or the version need not be there.
    """

    target: Target | None
    verb: str
    takes_body: bool
    scope: AccessScope
    is_served: bool
    model_at: int
    version_at: int
    ending: int
    version_ending: int
    is_odd: bool


class _Leaf(msgspec.Struct, frozen=True, gc=False):
    by_method: dict[str, _Reply | None]
    other: _Reply | None
    allow: str


class _Node(msgspec.Struct, frozen=True, gc=False):
    """Holds what follows a part of a path: by the segments that rows say literally, by an ending, by any other name.
    `leaf`: what the path is that ends here; `rest`: what one is that goes on in a way that is not here.
    """

    literals: dict[str, "_Node"]
    endings: Sequence[tuple[str, "_Node"]]
    named: "_Node | None"
    leaf: _Leaf | None
    rest: _Leaf | None


class _Left(msgspec.Struct, frozen=True, gc=False):
    """A route, and the segments of its path that are left at some node."""

    route: HttpRoute
    segments: tuple[str, ...]


class _Tier(msgspec.Struct, frozen=True, gc=False):
    """Routes that say equally much literally about a part of a path, and what goes for the rest of it after them."""

    left: Sequence[_Left]
    rest: _Leaf | None = None


Listed = Callable[[Sequence[str]], Sequence[str]]
"""Which methods a refusal lists, of those that rows have."""


def with_head(methods: Sequence[str]) -> Sequence[str]:
    """Return the methods with HEAD behind GET."""
    return [each for method in methods for each in ((method, "HEAD") if method == "GET" else (method,))]


class RouteTree:
    """Finds the target of a head among routes. `say` words the refusal of others, `listed` chooses the methods that
    it lists.
    """

    def __init__(self, routes: Iterable[HttpRoute], say: Advice, listed: Listed = with_head) -> None:
        self._say = say
        self._listed = listed
        self._root = self._node([_Tier([_Left(route, tuple(route.path.split("/"))) for route in routes])])

    def find(self, head: Head) -> Target:
        """Return the target. Raises RouteRefusal, and INVALID for a name that is no UTF-8. HEAD is GET: the front end,
        who owns the framing, keeps the content of the answer back.
        """
        segments = head.path.split("/")
        node = self._root
        for segment in segments:
            following = node.literals.get(segment)
            if following is None:
                following = node.named if segment and not node.endings else _behind(node, segment)
                if following is None:
                    leaf = node.rest
                    break
            node = following
        else:
            leaf = node.leaf
        reply = None if leaf is None else leaf.by_method.get(head.method, leaf.other)
        if reply is None:
            allow = "" if leaf is None else leaf.allow
            raise RouteRefusal(head, allow, self._say)
        if reply.target is not None:
            return reply.target
        if reply.is_odd or "%" in head.path:
            return _spelt(reply, segments)
        model, version = segments[reply.model_at], segments[reply.version_at]
        return Target(reply.verb, model, version, reply.takes_body, 0, reply.scope, reply.is_served)

    def _node(self, tiers: Sequence[_Tier]) -> _Node:
        leaf, rest, alive = None, None, []
        for tier in tiers:
            ended = [each.route for each in tier.left if not each.segments]
            swallowing = [
                each.route for each in tier.left if each.segments and each.segments[0].endswith(_REST)
            ]
            rest = self._leaf(swallowing) if swallowing else tier.rest
            if leaf is None:
                leaf = self._leaf(ended) if ended else rest
            deeper = [each for each in tier.left if each.segments and each.route not in swallowing]
            alive.append(_Tier(deeper, rest))
            if rest is not None:
                break
        firsts = dict.fromkeys(each.segments[0] for tier in alive for each in tier.left)
        literals = {first: self._node(_below(alive, first)) for first in firsts if first[:1] != "{"}
        endings = {first.partition("}")[2] for first in firsts if first[:1] == "{"} - {""}
        named = _below(alive, "{}") if any(first[-1:] == "}" for first in firsts) else None
        return _Node(
            literals,
            [
                (ending, self._node(_below(alive, "{}" + ending)))
                for ending in sorted(endings, key=len, reverse=True)
            ],
            self._node(named) if named else None,
            leaf,
            rest,
        )

    def _leaf(self, routes: Sequence[HttpRoute]) -> _Leaf:
        by_method: dict[str, _Reply | None] = {}
        for route in routes:
            for method in route.methods.split():
                by_method.setdefault(method, _reply(route))
        allow = ", ".join(self._listed(list(by_method)))
        other = by_method.pop(ANY, None)
        if other is not None:
            by_method.setdefault("OPTIONS", None)
        if "GET" in by_method:
            by_method.setdefault("HEAD", by_method["GET"])
        return _Leaf(by_method, other, allow)


def _below(tiers: Iterable[_Tier], first: str) -> Sequence[_Tier]:
    """Return what is left behind a segment: the routes that say it literally before those that name it. "{}": some
    segment, with the ending that stands behind it.
    """
    found = []
    for tier in tiers:
        fitting: dict[str, list[_Left]] = {}
        for each in tier.left:
            kind = _kind(each.segments[0])
            if _fits(kind, first):
                fitting.setdefault(kind, []).append(_Left(each.route, each.segments[1:]))
        order = sorted(fitting, key=lambda kind: (kind[:2] == "{}", -len(kind)))
        found += [_Tier(fitting[kind]) for kind in order]
        if tier.rest is not None:
            found.append(_Tier((), tier.rest))
    return found


def _kind(segment: str) -> str:
    """Return a segment of a row without its name."""
    return "{}" + segment.partition("}")[2] if segment[:1] == "{" else segment


def _fits(kind: str, first: str) -> bool:
    if kind[:2] != "{}":
        return kind == first
    ending = kind[2:]
    return first != "" and first.endswith(ending) and first != ending


def _behind(node: _Node, segment: str) -> _Node | None:
    """Return what follows a segment that may have one of the node's endings."""
    for ending, following in node.endings:
        if segment.endswith(ending) and segment != ending:
            return following
    return node.named if segment else None


def _spelt(reply: _Reply, segments: Sequence[str]) -> Target:
    """Return the target whose names are not segments as they are."""
    model = segments[reply.model_at]
    version = segments[reply.version_at] if reply.version_at < len(segments) else ""
    model = decoded(model[: len(model) - reply.ending])
    version = decoded(version[: len(version) - reply.version_ending])
    return Target(reply.verb, model, version, reply.takes_body, 0, reply.scope, reply.is_served)


def _reply(route: HttpRoute) -> _Reply:
    """Compile a route for the methods that it has."""
    model_at = ending = version_at = version_ending = 0
    for i, segment in enumerate(route.path.split("/") if route.subject else ()):
        name, _, behind = segment.partition("}")
        if name == "{" + route.subject:
            model_at, ending = i, len(behind)
        elif name == "{" + _VERSION:
            version_at, version_ending = i, 0 if behind == _REST else len(behind)
    target = Target(route.verb, "", "", route.takes_body, 0, route.scope, route.is_served)
    return _Reply(
        None if model_at or version_at else target,
        route.verb,
        route.takes_body,
        route.scope,
        route.is_served,
        model_at,
        version_at,
        ending,
        version_ending,
        ending > 0 or version_ending > 0 or route.path.endswith(_REST),
    )
