"""Parts of the page's views, as its tests read and use them."""


def read_answer(service, place: str) -> dict:
    """The interface's answer at a place."""
    with service.client() as client:
        return client.get(place).json()


def list_comparisons(service, a: str, b: str) -> list[str]:
    """Ids of the comparisons of these two."""
    items = read_answer(service, "/v1/comparisons?limit=100")["items"]
    return [one["id"] for one in items if (one["a"], one["b"]) == (a, b)]


def system_rows(page):
    """Rows of a windowed table, without references."""
    return page.locator(".windowed tbody tr[data-place]")


def listed_evaluations(page) -> list[str]:
    """Ids of the evaluations of a board, in their order."""
    links = system_rows(page).locator("a.main")
    return [each.rsplit("/", 1)[1] for each in links.evaluate_all("all => all.map((a) => a.href)")]


def draw_rectangle(page, *corners) -> None:
    """Draws a rectangle on a plot, between these shares of its width and height."""
    plot = page.locator("svg.brushed")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    start, end = ((box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in corners)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(*end, steps=4)
    page.mouse.up()
