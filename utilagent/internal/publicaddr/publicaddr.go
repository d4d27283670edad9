// Package publicaddr classifies addresses before uwf connects to them for a model or a sandboxed program.
package publicaddr

import (
	"net"
	"net/netip"
	"slices"
	"sync"
)

// private lists non-public addresses that package netip does not know.
var private = sync.OnceValue(func() (list []netip.Prefix) {
	for _, s := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4",
		"168.63.129.16/32", // a public address, but inside Azure it is the machine's host
		"::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fec0::/10",
	} {
		list = append(list, netip.MustParsePrefix(s))
	}
	return list
})

// Is reports whether an address belongs to the public internet.
func Is(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if nat64 := netip.MustParsePrefix("64:ff9b::/96"); nat64.Contains(a) {
		b := a.As16() // an IPv4 address is in the last bytes
		return Is(netip.AddrFrom4([4]byte(b[12:])))
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	for _, p := range private() {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// IsOwn reports whether a public address belongs to this machine: services on it may trust local clients.
func IsOwn(a netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return false // unknown, so treat it as public
	}
	a = a.Unmap().WithZone("")
	return !a.IsLoopback() && slices.ContainsFunc(list, func(own net.Addr) bool {
		p, err := netip.ParsePrefix(own.String())
		return err == nil && p.Addr().Unmap() == a
	})
}
