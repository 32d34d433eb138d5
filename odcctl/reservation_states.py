"""The states of a reservation, in words of /v1/reservations."""

WAITING = ("pending", "queued", "preparing")
LIVE = (*WAITING, "active")
OVER = ("expired", "cancelled", "failed")
STATUSES = (*LIVE, *OVER)
