// Package hostlist implements the list of hosts that a sandboxed program can reach. It compares names and
// literal addresses without resolving them.
package hostlist

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// List is a list of allowed hosts. The zero value allows none.
type List struct{ rules []rule }

type rule struct {
	host    Host
	below   bool   // subdomains of host, but not host itself
	anyPort bool   // every port
	port    uint16 // 0 means 443 and 80
}

// Parse parses entries of the forms host, host:port, *.host and host:*. Without a port an entry allows 443
// and 80. An address is allowed only by an identical entry.
func Parse(entries []string) (List, error) {
	var l List
	for _, s := range entries {
		r, err := parse(s)
		if err != nil {
			return List{}, fmt.Errorf("host %q: %w", s, err)
		}
		l.rules = append(l.rules, r)
	}
	return l, nil
}

func parse(s string) (rule, error) {
	var r rule
	name, port, hasPort := cutPort(s)
	name, r.below = strings.CutPrefix(name, "*.")
	if r.anyPort = port == "*"; hasPort && !r.anyPort {
		var err error
		if r.port, err = parsePort(port); err != nil {
			return rule{}, err
		}
	}
	var err error
	if r.host, err = ParseHost(name); err == nil && r.below && r.host.Addr.IsValid() {
		err = errors.New("an IP address cannot have subdomains")
	}
	return r, err
}

// Allows reports whether the list allows a host and port.
func (l List) Allows(h Host, port uint16) bool {
	return slices.ContainsFunc(l.rules, func(r rule) bool {
		same := r.host == h
		if r.below {
			same = h.Name != "" && strings.HasSuffix(h.Name, "."+r.host.Name)
		}
		return same && (r.anyPort || r.port == port || r.port == 0 && (port == 443 || port == 80))
	})
}

// Host is a canonical name or, if Name is empty, an address.
type Host struct {
	Name string
	Addr netip.Addr
}

func (h Host) String() string {
	if h.Name == "" && h.Addr.IsValid() {
		return h.Addr.String()
	}
	return h.Name
}

// ParseHost parses a name or an address, with or without brackets. It converts names to lower case ASCII
// without a trailing dot, and IPv4-mapped addresses to IPv4.
func ParseHost(s string) (Host, error) {
	inner, bracketed := strings.CutPrefix(s, "[")
	if bracketed {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "]"); !closed {
			return Host{}, errors.New("missing bracket")
		}
	}
	a, err := netip.ParseAddr(inner)
	switch {
	case err == nil && a.Zone() == "" && (!bracketed || a.Is6()):
		return Host{Addr: a.Unmap()}, nil
	case err == nil || bracketed || strings.Contains(s, ":"):
		return Host{}, errors.New("invalid IP address")
	}
	name, err := canonical(s)
	return Host{Name: name}, err
}

// ParseTarget parses host:port, as in a request to a proxy.
func ParseTarget(s string) (Host, uint16, error) {
	name, text, ok := cutPort(s)
	if !ok {
		return Host{}, 0, errors.New("missing port")
	}
	port, err := parsePort(text)
	if err != nil {
		return Host{}, 0, err
	}
	h, err := ParseHost(name)
	return h, port, err
}

// cutPort splits off a port. An IPv6 address needs brackets to have one.
func cutPort(s string) (host, port string, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 || strings.Count(s, ":") > 1 && !strings.HasSuffix(s[:i], "]") {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

func parsePort(s string) (uint16, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	if err != nil || n == 0 || strings.HasPrefix(s, "0") || strings.HasPrefix(s, "+") {
		return 0, errors.New("want a port from 1 to 65535")
	}
	return uint16(n), nil
}

const (
	longestName  = 253 // maximum length of a DNS name, in characters
	longestLabel = 63
)

var errName = errors.New("invalid host name (write non-ASCII names in their xn-- form)")

// canonical returns the form of a name used for comparing and dialing.
func canonical(s string) (string, error) {
	name := strings.TrimSuffix(strings.ToLower(s), ".")
	labels := strings.Split(name, ".")
	if len(name) > longestName || slices.ContainsFunc(labels, func(l string) bool { return !isLabel(l) }) ||
		isNumber(labels[len(labels)-1]) { // some resolvers accept 127.1 and 0x7f000001 as addresses
		return "", errName
	}
	return name, nil
}

// isNumber reports whether a resolver could take the last label for part of an address.
func isNumber(label string) bool {
	return label[0] >= '0' && label[0] <= '9' &&
		(strings.HasPrefix(label, "0x") || strings.Trim(label, "0123456789") == "")
}

func isLabel(label string) bool {
	return label != "" && len(label) <= longestLabel && label[0] != '-' && label[len(label)-1] != '-' &&
		strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}
