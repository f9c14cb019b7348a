"""Names and words that would do something to a page or a terminal, if they were not shown as text."""

from __future__ import annotations

import random

PIECES = (
    "<script>window.ran=1</script>",
    "</script><script>window.ran=1</script>",
    "<img src=x onerror=window.ran=1>",
    "<svg onload=window.ran=1>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "<a href=javascript:window.ran=1>x</a>",
    "<style>*{display:none}</style>",
    "<meta http-equiv=refresh content=0;url=https://example.invalid>",
    "<base href=https://example.invalid/>",
    "<form action=https://example.invalid><input autofocus onfocus=window.ran=1>",
    "<math><mi xlink:href=javascript:window.ran=1>",
    "<link rel=stylesheet href=https://example.invalid/x.css>",
    "</title></style></textarea>-->",
    "<!--",
    "]]>",
    '" onmouseover="window.ran=1',
    "' onfocus='window.ran=1' autofocus='",
    "&lt;b&gt; &amp; &#x3c;script&#x3e;",
    "{{style}}{{policy}}",
    "${7*7}{{7*7}}",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;https://example.invalid\x07link\x1b]8;;\x07",
    "\x1b]52;c;AAAA\x07",
    "\x1bP+q\x1b\\",
    "\x9b31m",
    "\x9d0;x\x9c",
    "\r\x1b[2K",
    "\x08\x08\x08",
    "\x07",
    "\x0b\x0c\x85",
    "\u2028\u2029",
    "\u202e\u2066rtl\u2069\u202c",
    "\u200f\u200e\u061c",
    "\ufeff\u200b\u00ad",
    "\U000e0041\U000e007f",
    "[bold]x[/bold][link=https://example.invalid]y[/link]",
    "[/]",
    ":smile:",
    "=1+1",
    "%s%n%x",
    "\\x1b[31m",
    "名前 ü λ",
    "\udcff",
)
"""Each a try to run, to load, to colour, to turn around or to hide something."""


def word(choices: random.Random, *, surrogates: bool = True) -> str:
    """Some of them, one after the other."""
    text = "".join(choices.choice(PIECES) for _ in range(choices.randint(1, 3)))
    return text if surrogates else text.replace("\udcff", "")


def raw(text: str) -> str:
    """What in a text a terminal would act on; "" if there is nothing."""
    return "".join(c for c in text if c != "\n" and not c.isprintable())
