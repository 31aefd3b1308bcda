"""``kernel-forge devices``."""

import argparse
import json

from kernel_forge.cli.output import may_be_closed
from kernel_forge.ports import Device, DeviceInfo


def devices_command(options: argparse.Namespace, devices: list[Device]) -> int:
    """List the devices; 0 when one is usable, else 3."""
    infos = [device.info() for device in devices]
    with may_be_closed():
        _print(infos, as_json=options.json)
    return 0 if any(i.unavailable is None for i in infos) else 3


def _print(infos: list[DeviceInfo], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": i.name,
                "description": i.description,
                "basis": i.basis,
                "unavailable": i.unavailable,
                "facts": dict(i.facts),
            }
            for i in infos
        ]
        print(json.dumps({"schema": 1, "devices": rows}, indent=2))
    else:
        for info in infos:
            state = "usable" if info.unavailable is None else f"unavailable: {info.unavailable}"
            print(f"{info.name}: {info.description} ({state})")
            for name, value in info.facts.items():
                print(f"  {name}: {value}")
