"""The states of a reservation, as /v1/reservations names them."""

WAITING = ("pending", "queued", "preparing")
LIVE = (*WAITING, "active")
OVER = ("expired", "cancelled", "failed")
STATUSES = (*LIVE, *OVER)
