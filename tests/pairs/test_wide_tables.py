"""Tables on a terminal: what is too wide is broken between words or stands below, and nothing is cut off."""

import io

from rich.console import Console

from common.pairs.wide_tables import print_table

HEADINGS = ("pair", "a long heading", "time", "why")
ROWS = [["copy", "1", "1.25 ms", "reads once and writes once"], ["add", "22", "10 us", ""]]


def printed(width, headings=HEADINGS, rows=ROWS, **options):
    console = Console(file=io.StringIO(), width=width)
    print_table("a title of several words", headings, rows, console, **options)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert max(map(len, lines)) <= width
    return [line for line in lines if line.strip(" ─")]


def test_headings_give_way_first_then_cells_both_between_words():
    assert printed(80)[1:3] == [
        " pair  a long heading  time     why",
        " copy  1               1.25 ms  reads once and writes once",
    ]
    assert printed(53)[1:3] == [
        "       a long",
        " pair  heading  time     why",
    ]
    assert printed(44)[3:6] == [
        " copy  1        1.25 ms  reads once and",
        "                         writes once",
        " add   22       10 us",
    ]


def test_columns_without_room_stand_below_with_their_keys():
    assert printed(50, whole_cells=True)[1:] == [
        " pair  a long heading  time",
        " copy  1               1.25 ms",
        " add   22              10 us",
        " pair  why",
        " copy  reads once and writes once",
        " add",
    ]
    lines = printed(44, whole_cells=True, keys=2)
    assert lines[-2:] == [" copy  1        reads once and writes once", " add   22"]
