"""Pages in Markdown from templates: what a page says stands in `templates/`, what it shows is computed beside it."""

import re
from functools import cache
from typing import Any

from common.pairs.pair import ROOT
from common.show import formats, tables
from common.show.layout import markdown_table


@cache
def _template(name: str) -> Any:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # here: most programs make no page

    loader = FileSystemLoader(ROOT)
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.globals |= {"table": markdown_table, "source": tables.source, "digits": formats.digits}
    return environment.get_template(name)  # not escaped: the pages are Markdown, their texts our own


def page(template: str, **values: Any) -> str:
    """A page of its template (a path from the repository's root), with one empty line where there are several.

    Templates call `table(headings, rows)`, `source(*files)` and `digits(number)`.
    """
    return re.sub(r"\n{3,}", "\n\n", _template(template).render(values)).strip() + "\n"
