"""What looks like a credential, by its form or by the name it stands under, and how it is masked. Pure.

`mask` is used for reports and for masking alike; masking twice changes nothing.
"""

import re
from functools import lru_cache

MASK = "[redacted]"
_LONGEST_NAME = 100
_SHORTEST = 6
_LONG = 13
_MANY_DIGITS = 4
_LONG_PART = 8
_MOST_ROUNDS = 4
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
# Names whose value is a secret unless it plainly is something else.
_SECRET_NAME = re.compile(
    r"(?:[a-z0-9_.]*_)?(?:api_?keys?|access_?keys?|access_?key_?id|(?:access|auth|bearer|refresh|session|api|bot)_?tokens?|"
    r"client_?secret|secrets?|secret_?(?:access_?)?keys?|signing_?keys?|private_?keys?|pass_?words?|passwd|pwd|pass_?phrase)"
)
# Names under which descriptions are as usual as values: only what looks like a token counts.
_DOUBTFUL_NAME = re.compile(r"(?:[a-z0-9_.]*_)?(?:authorization|credentials?|cookies?|tokens?)")
_NO_SECRET = re.compile(
    r"(?:is|has|needs?|requires?|supports?|no|use|uses|with|max|min|total|forgot|reset)_.*|(?:.*_)?(?:page|continuation)_?token"
)
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|digest)[ :]{1,3}(?=\S)", re.IGNORECASE)
_TOKEN_CHARACTERS = re.compile(r"[A-Za-z0-9._~+/=:-]{8,}")
# Addresses on a ledger, which the token members of paying agents hold.
_LEDGER_ADDRESS = re.compile(
    r"0x[0-9a-fA-F]+|[1-9A-HJ-NP-Za-km-z]{32,44}|(?:eip155|solana|[a-z0-9-]{3,8}:[\w-]{1,32}):.*"
)

_WORDS = re.compile(
    r"(?:[a-z]{1,24}|[A-Z][a-z]{1,24}|[A-Z]{1,24})(?:[-_/,|+:](?:[a-z]{1,24}|[A-Z][a-z]{1,24}|[A-Z]{1,24}))*"
)
_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_TEMPLATE = re.compile(r"\$\{|\$\(|\{\{|<[A-Za-z_ -]{1,60}>|\{[A-Za-z_.-]{1,60}\}|%[A-Z_]{2,60}%|%s\b")
_ELSEWHERE = re.compile(
    r"(?:env|process\.env|os\.environ|secrets?|vault|file|op|ssm|arn|config)[:.\[].*|(?:~|\.\.?)?(?:/[a-z0-9_.-]{1,60})+|"
    r"#[/A-Za-z].*|\$[A-Za-z_]\w*",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\[<{(].*[\]>})]|[*•.x_#-]+|\*+.*|.*(?:\.{3}|…|\*{3,}|x{4,}).*|"
    r"(?:your|insert|enter|replace|put|paste|my[-_ ](?:api|secret|token|key|password|access|client))[-_ ].*|"
    r"change[-_]?(?:me|it).*|(?:.*[-_])?here|placeholder.*|redacted.*|oauth.{0,24}|open_?id.{0,24}|x[-_]?402|"
    r"(?:rfc|aes|rsa|sha|hs|es|rs|ps|ed|hmac|ecdsa)[-_]?[0-9]{3,5}.{0,12}|(?:api)?key[-_]?[0-9]{0,3}|"
    r"(?:test|demo|dummy|fake)[-_]?[0-9]{0,3}",
    re.IGNORECASE | re.DOTALL,
)
_PART = re.compile(r"[A-Za-z0-9]+")
_STANDARD = re.compile(r"(?:rfc|iso|sha|aes|utf|oauth)[-_]?[0-9.]+", re.IGNORECASE)
_WORDS_AND_NUMBER = re.compile(r"(?:[A-Za-z]{2,24}[-_./]){0,6}[A-Za-z]{2,24}[-_.]?v?[0-9]{1,2}(?:\.[0-9]{1,2})?")
_DOTTED = re.compile(r"[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]{4,}){2,}")

# Forms that issuers gave their tokens so that they can be recognised.
_ISSUED = re.compile(
    r"(?<![A-Za-z0-9])(?:sk|rk)[-_](?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9])gh[pousr]_(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|(?<![A-Za-z0-9])xox[abeprs]-(?=[A-Za-z-]{0,40}[0-9])[A-Za-z0-9-]{10,}|(?<![A-Za-z0-9])glpat-[A-Za-z0-9_-]{16,}"
    r"|(?<![A-Za-z0-9])(?:AKIA|ASIA)(?=[A-Z]{0,16}[0-9])[0-9A-Z]{16}(?![a-z])[0-9A-Z]*"
    r"|(?<![A-Za-z0-9])AIza(?=[A-Za-z_-]{0,30}[0-9])[0-9A-Za-z_-]{30,}|(?<![A-Za-z0-9])ya29\.[0-9A-Za-z_-]{20,}"
    r"|(?<![A-Za-z0-9])(?:npm|hf|dop_v1)_(?=[A-Za-z]{0,60}[0-9])[A-Za-z0-9]{30,}|(?<![A-Za-z0-9])SG\.[\w-]{16,}\.[\w-]{16,}"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"
    r"|-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[\s\S])*(?:-----END [A-Z ]{0,60}-----)?",
    re.ASCII,
)
# Some part that every such form has: where none is, the pattern need not look.
_MARKS = tuple(
    (
        "sk- sk_ rk- rk_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ xox glpat AKIA ASIA AIza ya29 npm_ hf_ dop_v1_ SG. eyJ "
        "-----BEGIN"
    ).split()
)
_BEARER = re.compile(r"(\bbearer[\s:=]{1,4}|\bbasic )([A-Za-z0-9._~+/=-]{12,})", re.IGNORECASE | re.ASCII)
_ASSIGNED = re.compile(
    r"((?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|secret[_-]?key|password|passwd|(?<=[?&])(?:token|key))"
    r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?)((?![{<\[$%(])[^\s\"'<>,;&)\]}]{6,})",
    re.IGNORECASE | re.ASCII,
)
# One of these is in every name that the pattern above knows.
_ASSIGNED_WORDS = ("key", "token", "secret", "passw")
# One of these is in everything that `mask` masks by a name or by what stands before it.
_SECRET_WORDS = (
    "key",
    "token",
    "secret",
    "pass",
    "pwd",
    "bearer",
    "basic",
    "credential",
    "authorization",
    "cookie",
    "kty",
    "@",
)
_USER_INFO = re.compile(r"(://[^\s/:@?#]{0,64}:)([^\s/@?#]{3,256})(?=@)")


def mask(name: str, text: str) -> str:
    """Give a text without the credentials it holds; `name` is the member it stands under."""
    for _ in range(_MOST_ROUNDS):
        masked = _mask_once(name, text)
        if masked == text:
            return text
        text = masked
    # What uncovers something new each time was made to do so.
    return MASK


def _mask_once(name: str, text: str) -> str:
    if len(text) < _SHORTEST:
        return text
    if name and _is_secret_under(name, text):
        return MASK
    masked = _ISSUED.sub(MASK, text) if any(mark in text for mark in _MARKS) else text
    # Each pattern only where the words are that it cannot do without.
    if "@" in masked and "://" in masked:
        masked = _USER_INFO.sub(_without_value, masked)
    lowered = masked.lower()
    if "bearer" in lowered or "basic" in lowered:
        masked = _BEARER.sub(_without_token, masked)
    if (":" in masked or "=" in masked) and any(word in lowered for word in _ASSIGNED_WORDS):
        masked = _ASSIGNED.sub(_without_value, masked)
    return masked


def may_hold_secret(text: str, lowered: str) -> bool:
    """Tell whether anything in a text, member names included, calls for a closer look."""
    return any(map(lowered.__contains__, _SECRET_WORDS)) or any(map(text.__contains__, _MARKS))


def is_secret_name(name: str) -> bool:
    """Tell whether a member or header of this name holds a credential."""
    return _name_kind(name[: _LONGEST_NAME + 1]) is not None


@lru_cache(maxsize=4096)
def _name_kind(name: str) -> re.Pattern[str] | None:
    if len(name) > _LONGEST_NAME:
        return None
    words = _CAMEL.sub("_", name).replace("-", "_").replace(" ", "_").lower()
    if _NO_SECRET.fullmatch(words):
        return None
    return next((pattern for pattern in (_SECRET_NAME, _DOUBTFUL_NAME) if pattern.fullmatch(words)), None)


def _is_secret_under(name: str, text: str) -> bool:
    kind = _name_kind(name[: _LONGEST_NAME + 1])
    if kind is None:
        return False
    text = text.strip()
    if kind is _SECRET_NAME:
        return not _is_something_else(text)
    token = _SCHEME.sub("", text, count=1)
    if not _TOKEN_CHARACTERS.fullmatch(token) or _LEDGER_ADDRESS.fullmatch(token):
        return False
    return _is_mixed(token) and not _is_something_else(token)


def _is_something_else(text: str) -> bool:
    """Tell what says where a secret goes, or is a word about it, from a secret."""
    if len(text) < _SHORTEST or any(character.isspace() for character in text):
        return True
    if "://" in text:
        return "@" not in text
    if is_secret_name(text) or _TEMPLATE.search(text):
        return True
    if any(pattern.fullmatch(text[:400]) for pattern in (_WORDS, _VARIABLE, _ELSEWHERE, _PLACEHOLDER)):
        return True
    return len(text) < _LONG and not any(character.isdigit() for character in text)


def _is_mixed(token: str) -> bool:
    """Tell a token from words: letters and digits, more than words with a number after them."""
    if not any(character.isdigit() for character in token) or not any(character.isalpha() for character in token):
        return False
    return not _WORDS_AND_NUMBER.fullmatch(token[:400])


def _without_value(match: re.Match[str]) -> str:
    value = match[2].rstrip(".")
    if _is_something_else(value) or not any(character.isdigit() for character in value):
        return match[0]
    return f"{match[1]}{MASK}"


def _without_token(match: re.Match[str]) -> str:
    token = match[2].rstrip(".=")
    known = _is_token(token) or match[2].endswith("=") or _DOTTED.fullmatch(token)
    return f"{match[1]}{MASK}" if known and not _is_something_else(token) else match[0]


def _is_token(token: str) -> bool:
    """Tell a token from words in running text, where names of standards hold digits, too."""
    token = _STANDARD.sub("", token)
    if sum(character.isdigit() for character in token) >= _MANY_DIGITS and _is_mixed(token):
        return True
    return any(len(part) >= _LONG_PART and _is_mixed(part) for part in _PART.findall(token))
