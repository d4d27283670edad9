package hostlist

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/fuzztest"
)

func TestAllows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		entries, target string
		allowed         bool
	}{
		{"api.example.com", "api.example.com:443", true},
		{"api.example.com", "api.example.com:80", true},
		{"api.example.com", "API.Example.COM.:443", true},
		{"API.Example.com.", "api.example.com:443", true},
		{"api.example.com", "api.example.com:8443", false},
		{"api.example.com", "evilapi.example.com:443", false},
		{"api.example.com", "x.api.example.com:443", false},
		{"api.example.com", "example.com:443", false},
		{"api.example.com:8443", "api.example.com:8443", true},
		{"api.example.com:8443", "api.example.com:443", false},
		{"api.example.com:*", "api.example.com:22", true},
		{"*.example.com", "api.example.com:443", true},
		{"*.example.com", "a.b.example.com:80", true},
		{"*.example.com", "example.com:443", false},
		{"*.example.com", "evilexample.com:443", false},
		{"*.example.com:8080", "a.example.com:8080", true},
		{"*.example.com:8080", "a.example.com:80", false},
		{"*.example.com:*", "a.example.com:1", true},
		{"xn--bcher-kva.example", "XN--BCHER-KVA.example:443", true},
		{"127.0.0.1:8080", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "[::ffff:127.0.0.1]:8080", true},
		{"127.0.0.1:8080", "localhost:8080", false},
		{"localhost:8080", "localhost:8080", true},
		{"localhost:8080", "127.0.0.1:8080", false},
		{"*.0.0.1 x", "127.0.0.1:80", false},
		{"::1", "[::1]:443", true},
		{"[::1]:8080", "[0:0:0:0:0:0:0:1]:8080", true},
		{"[::1]:*", "[::1]:5", true},
		{"2001:db8::8080", "[2001:db8::8080]:80", true},
		{"", "api.example.com:443", false},
	} {
		l, err := Parse(strings.Fields(c.entries))
		if c.allowed {
			require.NoError(t, err, c.entries)
		}
		h, port, err := ParseTarget(c.target)
		require.NoError(t, err, c.target)
		require.Equal(t, c.allowed, l.Allows(h, port), "%s of %s", c.target, c.entries)
	}
}

func TestEntriesAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", ".", "*", "*.", "**.a", "a..b", "*a.b", "a.*.b", "a.b.*", "https://a.b", "a.b/", "a b", "a.b:", "a.b:0", "a.b:65536", "a.b:080",
		"a.b:+80", "a.b:x", "a.b:80:80", "u@a.b", "a.b\x00.c", "a.b\n", "-a.b", "a-.b", "127.1", "0x7f000001", "2130706433", "1.2.3.4.5", "*.1.2.3.4",
		"[::1", "::1]", "[1.2.3.4]", "fe80::1%eth0", "[fe80::1%eth0]:80", "[a.b]:80", "ａ．b", "bücher.example", "a。b", "a\u200db.c", "\xff.a",
		strings.Repeat("a", 64) + ".b", strings.Repeat("a.", 127) + "b", strings.Repeat("ü", 60), strings.Repeat("ü", 5000),
	} {
		_, err := Parse([]string{s})
		require.Error(t, err, "%q", s)
	}
	for _, s := range []string{"a.b", "a.b:", "a.b:*", "*.a.b:80", "::1", "[::1]", ":80", "[]:80"} {
		_, _, err := ParseTarget(s)
		require.Error(t, err, "%q", s)
	}
}

// FuzzParse checks that a canonical host is its own canonical form and allows itself.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"a.b", "A.b.:80", "*.xn--bcher-kva.example:*", "[::1]:80", "::ffff:1.2.3.4", "0x7f.1", "\u0130.x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzztest.Bounded(t)()
		h, err := ParseHost(s)
		if err != nil {
			return
		}
		require.Regexp(t, `^[a-z0-9._:-]+$`, h.String())
		again, err := ParseHost(h.String())
		require.NoError(t, err)
		require.Equal(t, h, again)
		l, err := Parse([]string{s})
		if err == nil {
			require.True(t, l.Allows(h, 443))
		}
	})
}
