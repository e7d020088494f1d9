"""What the normal form of a live document offers, and when two of its values say the same. Pure.

Forms come from foreign documents of every version, so each reading tolerates whatever stands in a member's place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from index.identity import version_key
from index.text import fold, fold_name
from index.trust import Relation, registrable_domain, relation
from index.urls import BadUrl, canonical_url, host_of, resolve

_WORD = re.compile(r"[^\W_]+")
_FIGURE = re.compile(r"(?<!\S)[(~+-]?[0-9][0-9.,:/%-]*[kKmM]?[).,;:!?]?(?!\S)")
_MAJOR_MINOR = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.[0-9A-Za-z.+-]*)?")
# A binding that older server cards shorten.
_BINDINGS = {"http": "streamablehttp"}
_MOST = 2000
# Each is compared with each stated one.
_MOST_ADDRESSES = 200
_MOST_TEMPLATES = 50
# What is longer is no URL of ours, and nothing to remember.
_LONGEST_URL = 2048
_LONGEST_HOST = 253


@dataclass(frozen=True, slots=True)
class Address:
    """Where the document says that it can be called, and what is spoken there."""

    pointer: str
    url: str
    binding: str
    versions: tuple[str, ...]


def text(form: Mapping[str, Any], name: str) -> str | None:
    """Read a text member; what is no text counts as absent."""
    found = form.get(name)
    return found if isinstance(found, str) else None


def texts(value: Any) -> list[tuple[int, str]]:
    """Read the texts of a list with their places."""
    found = value[:_MOST] if isinstance(value, list) else []
    return [(index, item) for index, item in enumerate(found) if isinstance(item, str)]


def objects(value: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """Read the objects of a list with their places."""
    found = value[:_MOST] if isinstance(value, list) else []
    return [(index, item) for index, item in enumerate(found) if isinstance(item, Mapping)]


def names_of(form: Mapping[str, Any]) -> tuple[str | None, set[str]]:
    """Give the names of what can be asked for, with the member that lists them; None when nothing is listed."""
    if isinstance(form.get("skills"), list):
        skills = [item for _, item in objects(form["skills"])]
        return "/skills", {name for skill in skills for name in (text(skill, "id"), text(skill, "name")) if name}
    if isinstance(form.get("tools"), list):
        return "/tools", {name for _, tool in objects(form["tools"]) if (name := text(tool, "name"))}
    if isinstance(form.get("capabilities"), list):
        return "/capabilities", {name for _, name in texts(form["capabilities"])}
    return None, set()


def flags_of(form: Mapping[str, Any]) -> set[str]:
    """Give the tokens of the protocol features that a card declares, its extensions among them."""
    capabilities = form.get("capabilities")
    if not isinstance(capabilities, Mapping):
        return set()
    flags = {token_of(name) for name, value in capabilities.items() if value is True and isinstance(name, str)}
    uris = [text(item, "uri") for _, item in objects(capabilities.get("extensions"))]
    return flags | {token_of(uri) for uri in uris if uri}


def tags_of(form: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give the tags of all skills, each with its pointer."""
    return [
        (f"/skills/{index}/tags/{place}", tag)
        for index, skill in objects(form.get("skills"))
        for place, tag in texts(skill.get("tags"))
    ]


def addresses(form: Mapping[str, Any], legacy: Sequence[Any] = ()) -> list[Address]:
    """Give the addresses of a card, the preferred one first and those of a hybrid's older block last."""
    return [
        *_addresses("/supportedInterfaces", form.get("supportedInterfaces"), "protocolBinding"),
        *_addresses("/remotes", form.get("remotes"), "type"),
        *_addresses("", list(legacy), "protocolBinding"),
    ]


def _addresses(pointer: str, items: Any, binding: str) -> Iterator[Address]:
    for index, item in objects(items)[:_MOST_ADDRESSES]:
        url = text(item, "url")
        if url:
            one = text(item, "protocolVersion")
            versions = [one] if one else [version for _, version in texts(item.get("supportedProtocolVersions"))]
            place = f"{pointer}/{index}" if pointer else ""
            yield Address(place, url, text(item, binding) or "", tuple(versions))


def needs_credentials(form: Mapping[str, Any]) -> bool | None:
    """Tell whether calls need credentials; None when the document leaves that open."""
    for _, remote in objects(form.get("remotes")):
        headers = remote.get("headers")
        if isinstance(headers, Mapping) and any(
            required is True and str(name).lower() == "authorization" for name, required in headers.items()
        ):
            return True
    if isinstance(form.get("authRequired"), bool):
        return bool(form["authRequired"])
    alternatives = form.get("securityRequirements")
    # An alternative without a scheme lets everybody in.
    return True if isinstance(alternatives, list) and alternatives and all(alternatives) else None


class Offer:
    """What one form offers, worked out once: a catalog may hold ten thousand entries for one card of ten thousand tags.

    `legacy` are the addresses of a hybrid's older block.
    """

    def __init__(self, form: Mapping[str, Any], legacy: Sequence[Any] = ()) -> None:
        self.form = form
        self._legacy = legacy
        self._texts: dict[tuple[str, str], str] = {}

    @cached_property
    def inner(self) -> "Offer":
        """The card that an agent file is at the same time."""
        card = self.form.get("card")
        return Offer(card if isinstance(card, Mapping) else {})

    @cached_property
    def addresses(self) -> Sequence[Address]:
        return addresses(self.form, self._legacy)

    @cached_property
    def _places(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for place, address in enumerate(self.addresses):
            found.setdefault(canonical(address.url), []).append(place)
        return found

    @cached_property
    def _templates(self) -> Sequence[int]:
        return [place for place, address in enumerate(self.addresses) if "{" in address.url][:_MOST_TEMPLATES]

    def reached_by(self, url: str) -> list[Address]:
        """Give the addresses that a stated one is, in their order."""
        places = {*self._places.get(canonical(url), ())}
        near = range(min(len(self.addresses), _MOST_TEMPLATES)) if "{" in url else self._templates
        places.update(place for place in near if reaches(self.addresses[place].url, url))
        return [self.addresses[place] for place in sorted(places)]

    @cached_property
    def versions(self) -> Sequence[str]:
        """The protocol versions that are spoken anywhere, as written."""
        found = [version for address in self.addresses for version in address.versions]
        found += [version for _, version in texts(self.form.get("protocolVersions"))]
        return list(dict.fromkeys(found))

    @cached_property
    def spoken(self) -> frozenset[str]:
        return frozenset(map(protocol_version, self.versions))

    @cached_property
    def tags(self) -> Mapping[str, tuple[str, str]]:
        """The tags of all skills, by their folded form: the first place of each and how it is written there."""
        found: dict[str, tuple[str, str]] = {}
        for place, tag in tags_of(self.form):
            found.setdefault(fold_name(tag), (place, tag))
        return found

    @cached_property
    def has_skills(self) -> bool:
        return bool(objects(self.form.get("skills")))

    @cached_property
    def needs_credentials(self) -> bool | None:
        return needs_credentials(self.form)

    @cached_property
    def _names(self) -> tuple[str | None, frozenset[str]]:
        member, names = names_of(self.form)
        return member, frozenset(map(token_of, names))

    @property
    def names_member(self) -> str | None:
        return self._names[0]

    @property
    def names(self) -> frozenset[str]:
        """The tokens of what can be asked for."""
        return self._names[1]

    @cached_property
    def flags(self) -> frozenset[str]:
        return frozenset(flags_of(self.form))

    def words(self, member: str) -> str:
        """Give a text member as it is compared: without regard to spacing; empty when there is none."""
        if ("words", member) not in self._texts:
            self._texts["words", member] = " ".join((text(self.form, member) or "").split())
        return self._texts["words", member]

    def blotted(self, member: str) -> str:
        """Give a text member with its figures blotted out."""
        if ("blotted", member) not in self._texts:
            self._texts["blotted", member] = blotted(text(self.form, member) or "")
        return self._texts["blotted", member]


# --- when two values say the same -------------------------------------------------------------------------------------


def token_of(name: str) -> str:
    """Fold a name so that case, spacing and separators do not matter."""
    folded = fold(name)
    return "".join(_WORD.findall(folded)) or folded


def binding_token(name: str) -> str:
    """Fold the name of a binding or transport."""
    token = token_of(name)
    return _BINDINGS.get(token, token)


def protocol_version(version: str) -> str:
    """Cut a protocol version to what counts: patch numbers do not (A2A 3.6); dates stay whole."""
    match = _MAJOR_MINOR.fullmatch(version.strip())
    return f"{int(match[1])}.{int(match[2])}" if match else version.strip()


def same_version(first: str, second: str) -> bool:
    """Compare versions by what they say: `v1.2` is `1.2.0`, but builds of one version are two."""
    one, other = first.strip(), second.strip()
    if one == other:
        return True
    key = version_key(one)
    return key[0] == 2 and key == version_key(other) and one.partition("+")[2] == other.partition("+")[2]


def same_words(first: str, second: str) -> bool:
    """Compare texts without regard to spacing."""
    return first.split() == second.split()


def same_but_figures(first: str, second: str) -> bool:
    """Tell whether two texts differ in figures alone, as those with running counts do."""
    return blotted(first) == blotted(second)


def blotted(value: str) -> str:
    """Blot out the figures of a text."""
    return " ".join(_FIGURE.sub("#", value).split())


def reaches(offered: str, url: str) -> bool:
    """Tell whether an offered address, which may be a template with variables, is the one stated."""
    first, second = canonical(offered), canonical(url)
    return first == second or _fits(offered.strip(), url.strip()) or _fits(url.strip(), offered.strip())


def _fits(template: str, url: str) -> bool:
    """Compare what is fixed at both ends of a template: a pattern of a stranger's making could take for ever."""
    head, opening, rest = template.partition("{")
    tail = rest.rpartition("}")[2]
    return bool(opening) and len(url) >= len(head) + len(tail) and url.startswith(head) and url.endswith(tail)


def absolute(reference: str, base: Any) -> str | None:
    """Make a stated address absolute; None when there is nothing to resolve it against."""
    reference = reference.strip()
    if not reference.startswith("/"):
        return reference
    try:
        return resolve(base, reference) if isinstance(base, str) and "://" in base else None
    except BadUrl:
        return None


def canonical(url: str) -> str:
    """Write an address in the form that equal ones share; what is no URL stays as it is."""
    return _canonical(url) if len(url) <= _LONGEST_URL else url.strip()


@lru_cache(maxsize=4096)
def _canonical(url: str) -> str:
    try:
        return canonical_url(url)
    except BadUrl:  # the host and port of gRPC
        return url.strip()


def host_named(url: Any) -> str:
    """Name the host of an address, of a URL or of host and port; empty when there is none."""
    if not isinstance(url, str) or "{" in url:
        return ""
    address = canonical(url)
    host = host_of(address) if "://" in address else address.partition(":")[0].lower()
    return host if len(host) <= _LONGEST_HOST else ""


def are_related(publisher: str, host: str) -> bool:
    """Tell whether a host is the publisher's, as far as names can tell."""
    if relation(publisher, host) is not Relation.OTHER:
        return True
    domain = registrable_domain(publisher)
    return domain is not None and domain == registrable_domain(host)
