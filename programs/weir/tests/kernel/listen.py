"""Listens to what a router sends through the kernel, and writes each message down as a line of JSON.

Written from Linux's headers (genetlink.h, psample.h, net_dropmon.h) and from the list of attributes of hsflowd's module
for VPP, and from nothing of Weir. The first line says that it listens; it ends when it is instructed to.
"""

import json
import select
import socket
import struct

NETLINK_USERSOCK, NETLINK_GENERIC = 2, 16
SOL_NETLINK, NETLINK_ADD_MEMBERSHIP = 270, 1
GENL_ID_CTRL, CTRL_CMD_GETFAMILY = 16, 3

PSAMPLE = {0: ("iifindex", "I"), 1: ("oifindex", "I"), 2: ("origsize", "I"), 3: ("group", "I"), 4: ("seq", "I"),
           5: ("rate", "I"), 6: ("data", "x"), 14: ("proto", "H")}
NET_DM = {4: ("in_port", "n"), 6: ("proto", "H"), 7: ("payload", "x"), 9: ("trunc_len", "I"), 10: ("orig_len", "I"),
          14: ("origin", "H"), 15: ("group", "s"), 16: ("trap", "s"), 23: ("reason", "s")}
USERSOCK = {0: ("portname", "s"), 1: ("ifindex", "I"), 2: ("iftype", "I"), 3: ("ifspeed", "Q"), 4: ("ifdirection", "I"),
            5: ("oper_up", "I"), 6: ("admin_up", "I"), 7: ("rx_octets", "Q"), 8: ("tx_octets", "Q"), 9: ("rx_pkts", "Q"),
            10: ("tx_pkts", "Q"), 11: ("rx_bcasts", "Q"), 12: ("tx_bcasts", "Q"), 13: ("rx_mcasts", "Q"), 14: ("tx_mcasts", "Q"),
            15: ("rx_discards", "Q"), 16: ("tx_discards", "Q"), 17: ("rx_errors", "Q"), 18: ("tx_errors", "Q"),
            19: ("hw_address", "x"), 20: ("uptime", "I"), 21: ("osindex", "I"), 22: ("drops", "I"), 23: ("seq", "I")}
IN_PORT = {0: ("netdev_ifindex", "I"), 1: ("netdev_name", "s")}


def attributes(data):
    """Number (with its flags) and value of each; anything but a whole list is an error."""
    while data:
        length, kind = struct.unpack_from("HH", data)
        assert 4 <= length <= len(data), data
        yield kind, data[4:length]
        data = data[(length + 3) & ~3:]


def named(data, table):
    found = {}
    for kind, value in attributes(data):
        name, form = table[kind & 0x3FFF]
        assert bool(kind & 0x8000) == (form == "n"), f"{name} is nested or not"
        if form == "n":
            found[name] = named(value, IN_PORT)
        elif form == "x":
            found[name] = value.hex()
        elif form == "s":
            assert value.endswith(b"\0") and value.count(b"\0") == 1, value
            found[name] = value[:-1].decode()
        else:
            assert len(value) == struct.calcsize(form), (name, value)
            found[name] = struct.unpack(form, value)[0]
    return found


def messages(data):
    """Type, number and body of each netlink message."""
    while data:
        length, kind, _flags, sequence, _port = struct.unpack_from("IHHII", data)
        assert 16 <= length <= len(data), data
        yield kind, sequence, data[16:length]
        data = data[(length + 3) & ~3:]


def family(generic, name, group):
    """The numbers of a family and of one of its groups."""
    text = name.encode() + b"\0"
    attribute = struct.pack("HH", 4 + len(text), 2) + text
    attribute += b"\0" * (-len(attribute) % 4)
    body = struct.pack("BBH", CTRL_CMD_GETFAMILY, 1, 0) + attribute
    generic.send(struct.pack("IHHII", 16 + len(body), GENL_ID_CTRL, 1, 1, 0) + body)
    (kind, _, answer), = messages(generic.recv(65536))
    assert kind == GENL_ID_CTRL, f"no family {name}"
    found = dict(attributes(answer[4:]))
    groups = [dict(attributes(one)) for _, one in attributes(found[7])]
    number, = [struct.unpack("I", one[2])[0] for one in groups if one[1] == group.encode() + b"\0"]
    return struct.unpack("H", found[1])[0], number


def main():
    generic = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_GENERIC)
    generic.bind((0, 0))
    families = {}
    for name, group, table, command in (("psample", "packets", PSAMPLE, 0), ("NET_DM", "events", NET_DM, 5)):
        number, multicast = family(generic, name, group)
        families[number] = (name, table, command)
        generic.setsockopt(SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, multicast)
    user = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_USERSOCK)
    user.bind((0, 1 << 28))
    print(json.dumps({"family": "listening"}), flush=True)
    while True:
        ready, _, _ = select.select([generic, user], [], [])
        if generic in ready:
            for kind, _, body in messages(generic.recv(65536)):
                if kind not in families:
                    continue
                name, table, command = families[kind]
                assert body[0] == command, body
                print(json.dumps({"family": name, **named(body[4:], table)}), flush=True)
        if user in ready:
            for kind, sequence, body in messages(user.recv(65536)):
                found = named(body, USERSOCK)
                assert found["seq"] == sequence, found
                print(json.dumps({"family": {1: "status", 2: "counters"}[kind], **found}), flush=True)


main()
