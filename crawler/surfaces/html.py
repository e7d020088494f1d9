"""Discovery links and JSON-LD of an HTML page. Pure.

The parser costs quadratic time on hostile markup, so it never sees a page: a linear scan, bounded in bytes and tags,
cuts out the head and the JSON-LD scripts, and only those slices are parsed.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from index.urls import BadUrl, resolve

_HEAD_BYTES = 65_536
_HEAD_TAGS = 600
_LONGEST_TAG = 4096
_MAX_BASES = 20
_MAX_SCRIPTS = 50
_MAX_SCRIPT = 262_144
_HEAD_ELEMENTS = frozenset(
    ("html", "head", "title", "meta", "link", "base", "style", "script", "noscript", "template", "!doctype", "basefont")
)
# Elements whose content is text to the tokeniser: a tag inside them is none (HTML 13.2.5.1).
_TEXT_ELEMENTS = frozenset(("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes", "noscript"))
_TAG = re.compile(r"<(?:(!--)|(/?)([a-z!][^\s/>]{0,31}))", re.IGNORECASE)
_END_TAGS = {name: re.compile(f"</{name}", re.IGNORECASE | re.ASCII) for name in _TEXT_ELEMENTS}
_ASCII_SPACE = " \t\n\f\r"
_META_CHARSET = re.compile(rb"<meta[^>]{0,256}charset\s*=\s*[\"']?\s*([a-zA-Z0-9_:-]{1,40})", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([^\s;\"']{1,40})", re.IGNORECASE)
# Encodings that a page may be in; codecs that are no character sets (zip, rot13) must not be reachable by name.
_CODECS = re.compile(
    r"utf-?8|iso-?8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|gbk?|gb18030|big5|euc-(jp|kr)|shift[_-]jis"
)


@dataclass(frozen=True, slots=True)
class HtmlLink:
    """A link element of the head: absolute address, its relations in lower case, type hint."""

    url: str
    relations: tuple[str, ...]
    media_type: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """What a page offers to discovery: its base URL, links of its head, texts of its JSON-LD scripts."""

    base_url: str
    links: tuple[HtmlLink, ...]
    scripts: tuple[str, ...]
    # Whether there is more than is read: more scripts, longer ones, or what stands behind something without an end.
    is_cut: bool = False


def read_page(body: bytes, url: str, content_type: str | None, relations: frozenset[str]) -> Page:
    """Read the head links with one of `relations`, and the JSON-LD scripts of the whole page.

    `url` is the final URL after redirects. Links in the body, in comments, `<template>` or `<noscript>` don't count.
    """
    text = decode(body, content_type)
    scan = _scan(text)
    head = text[: scan.head_end]
    has_links = any(relation in head.lower() for relation in relations)
    if not has_links and not scan.scripts:
        return Page(url, (), (), scan.is_cut)
    base_url = _base_url(scan.bases, url)
    links = tuple(_links(LexborHTMLParser(head), base_url, relations)) if has_links else ()
    return Page(base_url, links, tuple(scan.scripts), scan.is_cut)


def decode(body: bytes, content_type: str | None) -> str:
    """Decode a page by its BOM, its Content-Type or its meta element, else as UTF-8; bad bytes are replaced."""
    if body.startswith(codecs.BOM_UTF8):
        return body[3:].decode("utf-8", "replace")
    stated = _CHARSET.search(content_type or "")
    meta = None if stated else _META_CHARSET.search(body[:1024])
    name = _codec((stated[1] if stated else meta[1].decode("ascii") if meta else "utf-8").lower())
    # What calls itself Latin-1 is read as Windows-1252, as browsers do (Encoding 4.2).
    return body.decode("cp1252" if name == "iso8859-1" else name, "replace")


def _codec(label: str) -> str:
    try:
        return codecs.lookup(label).name if _CODECS.fullmatch(label) else "utf-8"
    except LookupError:
        return "utf-8"


@dataclass(slots=True)
class _Scan:
    """What the scan of a page found: where its head ends, its base tags, the texts of its JSON-LD scripts."""

    head_end: int = 0
    bases: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    is_cut: bool = False

    def take_script(self, text: str) -> None:
        """Keep the text of a script, as far as there is room."""
        if self.is_full:
            self.is_cut = True
            return
        self.scripts.append(text[:_MAX_SCRIPT])
        self.is_cut = self.is_cut or len(text) > _MAX_SCRIPT

    @property
    def is_full(self) -> bool:
        return len(self.scripts) >= _MAX_SCRIPTS


def _scan(text: str) -> _Scan:
    """Walk the page once, tag by tag."""
    found = _Scan()
    head_end: int | None = None
    templates = tags = position = 0
    while (match := _TAG.search(text, position)) is not None:
        if match[1]:
            closed = text.find("-->", match.end())
            if closed < 0:
                found.is_cut = True
                break
            position = closed + 3
            continue
        start, name, closing, tags = match.start(), match[3].lower(), bool(match[2]), tags + 1
        end = _tag_end(text, match.end())
        if head_end is None and (
            (not templates and _leaves_head(name, closing)) or _exceeds_head(name, start, tags, end - start)
        ):
            head_end = start
        if name == "template":
            templates = max(0, templates + (-1 if closing else 1))
        if name == "base" and not closing and not templates and len(found.bases) < _MAX_BASES:
            found.bases.append(text[start : min(end, start + _LONGEST_TAG)])
        if name in _TEXT_ELEMENTS and not closing:
            close = _END_TAGS[name].search(text, end)
            if close is None:
                found.is_cut = True
                break
            is_wanted = name == "script" and not templates and not (found.is_full and found.is_cut)
            if is_wanted and _is_json_ld(text[start:end]):
                found.take_script(text[end : close.start()])
            end = close.start()
        position = end
    found.head_end = min(len(text), _HEAD_BYTES) if head_end is None else head_end
    return found


def _leaves_head(name: str, closing: bool) -> bool:
    return name not in _HEAD_ELEMENTS or (closing and name == "head")


def _exceeds_head(name: str, position: int, tags: int, length: int) -> bool:
    return position > _HEAD_BYTES or tags > _HEAD_TAGS or (length > _LONGEST_TAG and name not in _TEXT_ELEMENTS)


def _tag_end(text: str, position: int) -> int:
    """Find the end of a tag, minding quoted attribute values; a tag that never ends runs to the end of the page."""
    limit = min(len(text), position + 4 * _LONGEST_TAG)
    quote = ""
    for index in range(position, limit):
        character = text[index]
        if quote:
            if character == quote:
                quote = ""
        elif character in "\"'" and text[index - 1] == "=":
            quote = character
        elif character == ">":
            return index + 1
    closed = text.find(">", limit)
    return len(text) if closed < 0 else closed + 1


def _is_json_ld(tag: str) -> bool:
    """Tell a JSON-LD script by its start tag; parameters of the type are allowed."""
    if len(tag) > _LONGEST_TAG or "ld+json" not in tag.lower():
        return False
    script = LexborHTMLParser(tag).css_first("script")
    type_ = (script.attributes.get("type") or "") if script is not None else ""
    return type_.partition(";")[0].strip(_ASCII_SPACE).lower() == "application/ld+json"


def _base_url(tags: Sequence[str], url: str) -> str:
    """Take the first base element with an address; later ones and active schemes don't count (HTML 2.4.3)."""
    for tag in tags:
        element = LexborHTMLParser(tag).css_first("base[href]")
        if element is None:
            continue
        reference = (element.attributes.get("href") or "").strip(_ASCII_SPACE)
        if reference.lower().startswith(("data:", "javascript:")):
            return url
        try:
            return resolve(url, reference)
        except BadUrl:
            return url
    return url


def _links(tree: LexborHTMLParser, base_url: str, wanted: frozenset[str]) -> Iterator[HtmlLink]:
    for element in tree.css("link[rel][href]"):
        relations = tuple((element.attributes.get("rel") or "").lower().split())
        reference = (element.attributes.get("href") or "").strip(_ASCII_SPACE)
        if not reference or _is_inert(element) or not wanted.intersection(relations):
            continue
        try:
            yield HtmlLink(resolve(base_url, reference), relations, element.attributes.get("type"))
        except BadUrl:
            continue


def _is_inert(element: LexborNode) -> bool:
    node = element.parent
    while node is not None:
        if node.tag in ("template", "noscript", "svg"):
            return True
        node = node.parent
    return False
