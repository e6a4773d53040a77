"""The class of each device in a run, and the properties of each class."""

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np

from edgefl.channel.units import FloatArray
from edgefl.config.answers import wrong
from edgefl.engine.churn import Churn
from edgefl.engine.churn.always_on import AlwaysOn
from edgefl.engine.class_settings import ClassSettings, class_sizes
from edgefl.engine.devices.battery import Battery
from edgefl.engine.devices.device_file import DeviceRows
from edgefl.engine.power_models import Draws
from edgefl.engine.settings import DeviceSettings
from edgefl.errors import EdgeflError, about, clipped, moved, quoted
from edgefl.mobility import Recorded
from edgefl.rng import Streams

NO_CLASS = ClassSettings()


@dataclass(frozen=True)
class Fleet:
    """Devices and their classes; without classes, all devices belong to a single unnamed class.

    Attributes:
        kinds: properties of devices, for each class or for each row of a class's file.
        of: [devices] each device's kind, an index into `kinds`.
        names: name of each kind's class; empty without classes.
        extras: keys of each kind's class that `devices` does not have.
        notes: notes on unused columns of files.
    """

    kinds: tuple[DeviceSettings, ...]
    of: np.ndarray
    names: tuple[str, ...] = ()
    extras: tuple[ClassSettings, ...] = field(default=(NO_CLASS,))
    notes: tuple[str, ...] = ()

    @classmethod
    def drawn(cls, settings: DeviceSettings, devices: int, streams: Streams) -> "Fleet":
        """Draw the class of each device, and its row of the class's file.

        With `classes_by: seed`, every device draws a number, and the classes are filled in ascending order of these
        numbers. The result does not depend on other draws; splitting a class leaves the members of all other classes
        unchanged; and if devices are added, most devices keep their class.
        """
        classes = settings.classes
        if classes is None:
            alike = cls((settings,), np.zeros(devices, dtype=np.intp))
            return alike._with_rows(streams, by_id=settings.classes_by == "ids")
        sizes = class_sizes(classes, devices)
        order = np.arange(devices)
        if settings.classes_by == "seed":
            # one number per device in order of ids, so that adding devices does not change earlier devices' numbers
            order = np.argsort(streams("class").random(devices), kind="stable")
        of = np.empty(devices, dtype=np.intp)
        of[order] = np.repeat(np.arange(len(classes)), sizes)
        by_class = cls(tuple(settings.kinds()), of, tuple(classes), tuple(classes.values()))
        return by_class._with_rows(streams, by_id=settings.classes_by == "ids")

    def _with_rows(self, streams: Streams, *, by_id: bool) -> "Fleet":
        """Return the fleet with a separate kind for each row of a class's file that a device uses.

        Raises:
            EdgeflError: the file does not fit the devices; the message names the file, and the row or the remedy.
        """
        if all(kind.file is None for kind in self.kinds):
            return self
        kinds: list[DeviceSettings] = []
        class_of: list[int] = []
        notes: list[str] = []
        of = np.empty_like(self.of)
        for number, kind in enumerate(self.kinds):
            ids = np.flatnonzero(self.of == number)
            made = [kind]
            of[ids] = len(kinds)
            if kind.file is not None:
                own = "file" in self.extras[number].own()
                with about("devices", *(("classes", self.names[number]) if own else ()), "file"):
                    table = DeviceRows.read(kind.file)
                    rows = _rows(table, len(self), ids, streams, by_id=by_id)
                    used, at = np.unique(rows, return_inverse=True)
                    made = list(table.kinds(kind, used))
                of[ids] += at
                notes += table.notes
            kinds += made
            class_of += [number] * len(made)
        names = tuple(self.names[number] for number in class_of) if self.names else ()
        extras = tuple(self.extras[number] for number in class_of)
        return Fleet(tuple(kinds), of, names, extras, tuple(dict.fromkeys(notes)))

    @classmethod
    def of_types(cls, settings: DeviceSettings, recorded: Sequence[Recorded], streams: Streams) -> "Fleet":
        """Assign to each device the class named after its type in a trace or, without such a class, after its kind.

        Args:
            recorded: the devices as a trace lists them, with `id`, `kind` and `type`.

        Raises:
            EdgeflError: a device has no class, or a class has no device.
        """
        classes = settings.classes or {}
        numbers = {name: number for number, name in enumerate(classes)}
        of = np.array([numbers.get(one.type, numbers.get(one.kind, -1)) for one in recorded], dtype=np.intp)
        types = list(dict.fromkeys(one.type or one.kind for one in recorded))
        if (of < 0).any():
            lost = recorded[int((of < 0).argmax())]
            raise EdgeflError(
                f"device {quoted(lost.id)} of the trace has type {quoted(lost.type)} and kind {lost.kind}, but the"
                f" classes are {', '.join(classes)}: name a class after the type or the kind",
                ("devices", "classes"),
            )
        for name, number in numbers.items():
            if number not in of:
                raise EdgeflError(
                    f"no device of the trace has this type; the trace's types are {clipped(', '.join(types), 300)}",
                    ("devices", "classes", name),
                )
        by_type = cls(tuple(settings.kinds()), of, tuple(classes), tuple(classes.values()))
        return by_type._with_rows(streams, by_id=False)

    def __len__(self) -> int:
        return len(self.of)

    def device(self, id_: int) -> DeviceSettings:
        """Return the properties of a device."""
        return self.kinds[self.of[id_]]

    def column(self, value: Callable[[DeviceSettings], float]) -> FloatArray:
        """Return [devices] the result of a function of each device's settings."""
        return np.array([value(kind) for kind in self.kinds], dtype=float)[self.of]

    def class_names(self, ids: Collection[int] | None = None) -> list[str]:
        """Return the class names of the given devices, or of all devices; empty without classes."""
        if not self.names:
            return []
        of = self.of if ids is None else self.of[np.asarray(ids, dtype=np.intp)]
        return [self.names[kind] for kind in of.tolist()]

    @property
    def idle_power_w(self) -> FloatArray:
        """[devices] power of a device that is switched on and idle."""
        return self.column(lambda kind: kind.idle_power_w)

    def draws(self) -> list[Draws]:
        """Return the power draws of each device's radio."""
        kinds = [kind.draws() for kind in self.kinds]
        return [kinds[kind] for kind in self.of.tolist()]

    @property
    def samples_kept(self) -> FloatArray | None:
        """[devices] share of its training samples that each device keeps, or None if every device keeps all."""
        if all(extra.samples is None for extra in self.extras):
            return None
        kept = [1.0 if extra.samples is None else extra.samples for extra in self.extras]
        return np.array(kept)[self.of]

    def batteries(self) -> list[Battery | None]:
        """Return a new battery for each device, or None for a device on mains; empty if all are on mains."""
        if all(kind.battery_j is None for kind in self.kinds):
            return []
        places = [self.first_with("battery_j", kind.battery_j)[1] for kind in self.kinds]
        return [
            None
            if (kind := self.kinds[number]).battery_j is None
            else Battery(kind.battery_j, kind.recharge_w, kind.return_share, places[number])
            for number in self.of.tolist()
        ]

    def slowness(self, ids: Sequence[int], streams: Streams, key: tuple[str | int, ...]) -> list[float]:
        """Return the factor by which each device's computing time is multiplied in a round.

        Args:
            key: key that identifies the round.
        """
        spreads = [self.device(id_).compute_jitter for id_ in ids]
        return [
            1.0
            if spread is None
            else float(streams("compute", *key, id_).lognormal(-0.5 * spread**2, spread))
            for id_, spread in zip(ids, spreads, strict=True)
        ]

    def switches(self, streams: Streams) -> list[Iterator[float]]:
        """Return each device's switching times; empty if all are always on."""
        if all(type(kind.churn).switches is AlwaysOn.switches for kind in self.kinds):
            return []  # an empty list saves a process per device
        times_s: list[Iterator[float]] = [iter(())] * len(self)
        for churn, ids in self.groups(lambda kind: kind.churn):
            with moved(("devices", "churn"), self.first_with("churn", churn)[1]):
                for number, id_ in enumerate(ids.tolist()):
                    times_s[id_] = _rising(churn, number if churn.own_numbers else id_, streams)
        return times_s

    def members(self, session: int) -> Collection[int] | None:
        """Return the devices that may take part in a session, or None if all present devices may."""
        named = [kind.churn.members(session) for kind in self.kinds]
        if all(ids is None for ids in named):
            return None
        return frozenset(
            id_ for id_, kind in enumerate(self.of.tolist()) if (ids := named[kind]) is None or id_ in ids
        )

    def first_with(self, key: str, component: Any) -> tuple[str, tuple[str, ...]]:
        """Return the first class with this component, and the path of the key that sets it."""
        for name, kind, extra in zip(self.names, self.kinds, self.extras, strict=False):
            if getattr(kind, key) == component and getattr(extra, key) is not None:
                return name, ("devices", "classes", name, key)
        return "", ("devices", key)

    def groups(self, component: Callable[[DeviceSettings], Any]) -> list[tuple[Any, np.ndarray]]:
        """Return each distinct component of the classes, and the ids of all devices with it."""
        groups: dict[Hashable, tuple[Any, list[int]]] = {}
        keys: dict[int, Hashable] = {}  # by id(), since rows of a file share their components
        for number, kind in enumerate(self.kinds):
            one = component(kind)
            if id(one) not in keys:
                keys[id(one)] = (type(one), one.model_dump_json())
            groups.setdefault(keys[id(one)], (one, []))[1].append(number)
        return [(one, np.flatnonzero(np.isin(self.of, numbers))) for one, numbers in groups.values()]


def _rows(table: DeviceRows, devices: int, ids: np.ndarray, streams: Streams, *, by_id: bool) -> np.ndarray:
    """Return the row [ids] of each device in a table of phones, drawn at random or in the order of ids.

    Args:
        devices: number of devices in the run.
    """
    if not by_id:
        # one number per device in order of ids, so that adding devices does not change earlier devices' rows
        rows = (streams("device file").random(devices)[ids] * len(table)).astype(np.intp)
        return np.asarray(rows)
    if len(ids) > len(table):
        raise EdgeflError(
            f"{table.file.path} has {len(table)} rows for {len(ids)} devices; use fewer devices, or set classes_by:"
            " seed to draw a row for each device"
        )
    return np.arange(len(ids))


def _rising(churn: Churn, device: int, streams: Streams) -> Iterator[float]:
    """Return a device's switching times as an iterator that checks that they ascend."""
    times_s, place = churn.switches(device, streams), ("devices", "churn")
    if not isinstance(times_s, Iterator):
        raise wrong(churn.switches, times_s, "an iterator of times in s: yield them", *place)

    def checked() -> Iterator[float]:
        # compare with the time before the last: rounding may make the ends of a short interval equal or swap them
        older_s = last_s = -math.inf
        for time_s in times_s:
            if not (isinstance(time_s, Real) and time_s > older_s):
                raise wrong(churn.switches, time_s, "times in s, each later than the one before", *place)
            yield time_s
            older_s, last_s = last_s, time_s

    return checked()
