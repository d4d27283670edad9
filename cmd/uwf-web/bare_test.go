package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Browsers omit a default port and send hosts in lower case.
func TestHostsAsBrowsersSendThem(t *testing.T) {
	t.Parallel()
	for host, accepted := range map[string]map[string]bool{
		"127.0.0.1:80":   {"127.0.0.1": true, "127.0.0.1:80": true, "localhost": true, "127.0.0.1:443": false, "evil.example": false},
		"127.0.0.1:8123": {"127.0.0.1:8123": true, "LOCALHOST:8123": true, "127.0.0.1": false, "localhost": false, "127.0.0.1:80": false},
		"[::1]:80":       {"[::1]": true, "[::1]:80": true, "[::]": false},
	} {
		at, err := local(host)
		require.NoError(t, err)
		for asked, want := range accepted {
			require.Equal(t, want, at.hosted(asked), "%s of %s", asked, host)
		}
	}
	s := newSite(t, true)
	for address, want := range map[string][2]string{
		"https://Uwf.Example.org:443/": {"https://uwf.example.org", "uwf.example.org"},
		"https://uwf.example.org:8443": {"https://uwf.example.org:8443", "uwf.example.org:8443"},
		"http://localhost:80":          {"http://localhost", "localhost"},
	} {
		require.NoError(t, os.WriteFile(s.engine.Reader.Dirs.Config(), []byte("notify: { links: { address: '"+address+"' } }\n"), 0o600))
		origin, host := links{server: s.server}.address(t.Context())
		require.Equal(t, want, [2]string{origin, host}, address)
	}
}
