package publicaddr

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyPublicAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range []string{
		"127.0.0.1", "127.9.9.9", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"198.18.0.1", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd12::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
		"64:ff9b::a00:1", "2002:7f00:1::", "2001::1", "::7f00:1", "fec0::1",
	} {
		require.False(t, Is(netip.MustParseAddr(a)), a)
	}
	for _, a := range []string{"1.1.1.1", "93.184.215.14", "2606:4700::1111", "64:ff9b::101:101", "::ffff:8.8.8.8"} {
		require.True(t, Is(netip.MustParseAddr(a)), a)
	}
}
