package fetch

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// private are the addresses that are not of the public internet, besides those
// that package netip knows.
var private = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
	"203.0.113.0/24", "240.0.0.0/4",
	"168.63.129.16/32", // a public address, but inside Azure the machine's own host
	"::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
)

func prefixes(list ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, s := range list {
		out = append(out, netip.MustParsePrefix(s))
	}
	return out
}

// isPublic tells whether an address belongs to the public internet.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(a) {
		b := a.As16() // an address of version 4 is in its last bytes
		return isPublic(netip.AddrFrom4([4]byte(b[12:])))
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range private {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// isOwn tells whether a public address is this machine's own: what listens there
// may trust whoever comes from here.
func isOwn(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false // nobody knows: it has passed as public
	}
	a = a.Unmap().WithZone("")
	return !a.IsLoopback() && slices.ContainsFunc(list, func(own net.Addr) bool {
		p, err := netip.ParsePrefix(own.String())
		return err == nil && p.Addr().Unmap() == a
	})
}

// errPrivate is for an address that is not public.
type errPrivate struct{ addr netip.Addr }

func (e errPrivate) Error() string {
	return fmt.Sprintf("%s is not an address of the public internet, and only such may be fetched here. Use another URL, or say in your answer what should be looked up", e.addr)
}

// onlyPublic is for net.Dialer.Control: it sees the address that is really
// dialled, whatever a name has resolved to before, for every redirect and every
// address of a name.
func (f Options) onlyPublic(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	public := isPublic
	if f.public != nil {
		public = f.public
	}
	if !public(ap.Addr()) || isOwn(ap.Addr()) {
		return errPrivate{ap.Addr()}
	}
	return nil
}
