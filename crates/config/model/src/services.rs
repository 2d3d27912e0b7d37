//! Names of services for ports.
//!
//! The list is built in, and no machine's `/etc/services` is asked, so that a file means the same wherever it is checked.

use crate::scalar::decimal;

/// Ports with their names: IANA's, and the aliases that Linux systems have for them. Each name once.
#[rustfmt::skip]
const SERVICES: &[(u16, &str)] = &[
    (1, "tcpmux"), (7, "echo"), (9, "discard sink null"), (11, "systat users"), (13, "daytime"), (15, "netstat"), (17, "qotd quote"),
    (19, "chargen ttytst source"), (20, "ftp-data"), (21, "ftp fsp fspd"), (22, "ssh"), (23, "telnet"), (25, "smtp mail"),
    (37, "time timserver"), (43, "whois nicname"), (49, "tacacs"), (53, "domain"), (67, "bootps"), (68, "bootpc"), (69, "tftp"),
    (70, "gopher"), (79, "finger"), (80, "http www"), (88, "kerberos kerberos5 krb5 kerberos-sec"), (102, "iso-tsap tsap"),
    (104, "acr-nema"), (106, "poppassd"), (110, "pop3 pop-3"), (111, "sunrpc portmapper"), (113, "auth authentication tap ident"),
    (119, "nntp readnews untp"), (123, "ntp"), (135, "epmap loc-srv"), (137, "netbios-ns"), (138, "netbios-dgm"), (139, "netbios-ssn"),
    (143, "imap2 imap"), (161, "snmp"), (162, "snmp-trap snmptrap"), (163, "cmip-man"), (164, "cmip-agent"), (174, "mailq"),
    (177, "xdmcp"), (179, "bgp"), (199, "smux"), (209, "qmtp"), (210, "z3950 wais"), (213, "ipx"), (319, "ptp-event"),
    (320, "ptp-general"), (323, "rpki-rtr"), (324, "rpki-rtr-tls"), (345, "pawserv"), (346, "zserv"), (369, "rpc2portmap"),
    (370, "codaauth2"), (371, "clearcase"), (389, "ldap"), (427, "svrloc"), (443, "https"), (444, "snpp"), (445, "microsoft-ds"),
    (464, "kpasswd"), (465, "submissions ssmtp smtps urd"), (487, "saft"), (500, "isakmp"), (512, "exec biff comsat"),
    (513, "login who whod"), (514, "shell cmd syslog"), (515, "printer spooler"), (517, "talk"), (518, "ntalk"),
    (520, "route router routed"), (521, "ripng"), (538, "gdomap"), (540, "uucp uucpd"), (543, "klogin"), (544, "kshell krcmd"),
    (546, "dhcpv6-client"), (547, "dhcpv6-server"), (548, "afpovertcp"), (554, "rtsp"), (563, "nntps snntp"), (587, "submission"),
    (607, "nqs"), (623, "asf-rmcp"), (628, "qmqp"), (631, "ipp"), (636, "ldaps"), (646, "ldp"), (647, "dhcp-failover"), (655, "tinc"),
    (698, "olsr"), (706, "silc"), (749, "kerberos-adm"), (750, "kerberos4 kerberos-iv kdc"), (751, "kerberos-master"),
    (752, "passwd-server"), (754, "krb-prop hprop"), (775, "moira-db"), (777, "moira-update"), (779, "moira-ureg"), (783, "spamd"),
    (830, "netconf-ssh"), (853, "domain-s"), (861, "owamp-control"), (862, "twamp-control"), (871, "supfilesrv"), (873, "rsync"),
    (989, "ftps-data"), (990, "ftps"), (992, "telnets"), (993, "imaps"), (995, "pop3s"), (1080, "socks"), (1093, "proofd"),
    (1094, "rootd"), (1099, "rmiregistry"), (1127, "supfiledbg"), (1178, "skkserv"), (1194, "openvpn"), (1210, "predict"),
    (1236, "rmtcfg"), (1313, "xtel"), (1314, "xtelw"), (1352, "lotusnote lotusnotes"), (1433, "ms-sql-s"), (1434, "ms-sql-m"),
    (1524, "ingreslock"), (1645, "datametrics old-radius"), (1646, "sa-msg-port old-radacct"), (1649, "kermit"), (1677, "groupwise"),
    (1701, "l2f l2tp"), (1812, "radius"), (1813, "radius-acct radacct"), (1883, "mqtt"), (1985, "hsrp"), (2000, "cisco-sccp"),
    (2049, "nfs"), (2083, "radsec"), (2086, "gnunet"), (2101, "rtcm-sc104"), (2102, "zephyr-srv"), (2103, "zephyr-clt"),
    (2104, "zephyr-hm"), (2119, "gsigatekeeper"), (2121, "iprop"), (2123, "gtp-control"), (2135, "gris"), (2152, "gtp-user"),
    (2401, "cvspserver"), (2430, "venus"), (2431, "venus-se"), (2432, "codasrv"), (2433, "codasrv-se"), (2583, "mon"), (2600, "zebrasrv"),
    (2601, "zebra"), (2602, "ripd"), (2603, "ripngd"), (2604, "ospfd"), (2605, "bgpd"), (2606, "ospf6d"), (2607, "ospfapi"),
    (2608, "isisd"), (2628, "dict"), (2792, "f5-globalsite"), (2811, "gsiftp"), (2947, "gpsd"), (3050, "gds-db"), (3130, "icpv2 icp"),
    (3205, "isns"), (3260, "iscsi-target"), (3306, "mysql"), (3389, "ms-wbt-server rdp"), (3478, "stun turn"), (3493, "nut"),
    (3632, "distcc"), (3689, "daap"), (3690, "svn subversion"), (3784, "bfd-control"), (3785, "bfd-echo"), (3868, "diameter"),
    (4031, "suucp"), (4094, "sysrqd"), (4190, "sieve"), (4334, "netconf-ch-ssh"), (4353, "f5-iquery"), (4369, "epmd"), (4373, "remctl"),
    (4460, "ntske"), (4500, "ipsec-nat-t"), (4557, "fax"), (4559, "hylafax"), (4569, "iax"), (4691, "mtn"), (4739, "ipfix"),
    (4740, "ipfixs"), (4784, "bfd-multi-ctl"), (4789, "vxlan"), (4790, "vxlan-gpe"), (4899, "radmin-port"), (4949, "munin lrrd"),
    (5060, "sip"), (5061, "sip-tls"), (5222, "xmpp-client jabber-client"), (5269, "xmpp-server jabber-server"), (5308, "cfengine"),
    (5353, "mdns"), (5432, "postgresql postgres"), (5555, "rplay"), (5556, "freeciv rptp"), (5666, "nrpe"), (5667, "nsca"),
    (5671, "amqps"), (5672, "amqp"), (5680, "canna"), (5683, "coap"), (5684, "coaps"), (6000, "x11 x11-0"), (6001, "x11-1"),
    (6002, "x11-2"), (6003, "x11-3"), (6004, "x11-4"), (6005, "x11-5"), (6006, "x11-6"), (6007, "x11-7"), (6081, "geneve"),
    (6343, "sflow"), (6346, "gnutella-svc"), (6347, "gnutella-rtr"), (6379, "redis"), (6444, "sge-qmaster"), (6445, "sge-execd"),
    (6446, "mysql-proxy"), (6514, "syslog-tls"), (6566, "sane-port sane saned"), (6635, "mpls-udp"), (6667, "ircd"), (6696, "babel"),
    (6697, "ircs-u"), (7000, "bbs afs3-fileserver"), (7001, "afs3-callback"), (7002, "afs3-prserver"), (7003, "afs3-vlserver"),
    (7004, "afs3-kaserver"), (7005, "afs3-volser"), (7007, "afs3-bos"), (7008, "afs3-update"), (7009, "afs3-rmtsys"),
    (7100, "font-service xfs"), (8021, "zope-ftp"), (8080, "http-alt webcache"), (8081, "tproxy"), (8088, "omniorb"), (8140, "puppet"),
    (8883, "secure-mqtt"), (8990, "clc-build-daemon"), (9098, "xinetd"), (9101, "bacula-dir"), (9102, "bacula-fd"), (9103, "bacula-sd"),
    (9339, "gnmi-gnoi"), (9418, "git"), (9667, "xmms2"), (9673, "zope"), (10000, "webmin"), (10050, "zabbix-agent"),
    (10051, "zabbix-trapper"), (10080, "amanda"), (10081, "kamanda"), (10082, "amandaidx"), (10083, "amidxtape"), (10809, "nbd"),
    (11112, "dicom"), (11371, "hkp"), (17001, "sgi-cmsd"), (17002, "sgi-crsd"), (17003, "sgi-gcd"), (17004, "sgi-cad"), (17500, "db-lsp"),
    (22125, "dcap"), (22128, "gsidcap"), (22273, "wnn6"), (24554, "binkp"), (27374, "asp"), (30865, "csync2"), (57000, "dircproxy"),
    (60177, "tfido"), (60179, "fido"),
];

/// A port by its number or the name of its service.
pub(crate) fn port(text: &str) -> Option<u16> {
    let named = || {
        SERVICES
            .iter()
            .find(|(_, names)| names.split(' ').any(|name| name == text))
            .map(|(port, _)| *port)
    };
    decimal(text).or_else(|| named().filter(|_| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_name_stands_for_one_port() {
        let names: Vec<&str> = SERVICES
            .iter()
            .flat_map(|(_, names)| names.split(' '))
            .collect();
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(names.iter().all(|name| {
            !name.is_empty()
                && name
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        }));
        assert!(SERVICES.is_sorted_by_key(|(port, _)| *port));
        for (name, number) in [
            ("www", 80),
            ("http", 80),
            ("https", 443),
            ("domain", 53),
            ("snmp-trap", 162),
            ("bfd-control", 3784),
        ] {
            assert_eq!(port(name), Some(number), "{name}");
        }
        for wrong in ["", " ", "WWW", "http www", "www "] {
            assert_eq!(port(wrong), None, "{wrong}");
        }
    }
}
