package remote_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

func TestParseAddress(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]remote.Address{
		"team":                     {Scheme: "file", Text: filepath.Join(dir, "team")},
		"../team":                  {Scheme: "file", Text: filepath.Join(filepath.Dir(dir), "team")},
		"./a:b":                    {Scheme: "file", Text: filepath.Join(dir, "a:b")},
		filepath.Join(dir, "x"):    {Scheme: "file", Text: filepath.Join(dir, "x")},
		"host:team":                {Scheme: "ssh", Text: "host:team"},
		"me@host:/srv/team":        {Scheme: "ssh", Text: "me@host:/srv/team"},
		"ssh://me@host:22/team":    {Scheme: "ssh", Text: "ssh://me@host:22/team"},
		"postgres://uwf@db/uwf":    {Scheme: "postgres", Text: "postgres://uwf@db/uwf"},
		"s3+company://bucket/path": {Scheme: "s3+company", Text: "s3+company://bucket/path"},
	} {
		got, err := remote.ParseAddress(text, dir)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "a\nb", "a\x1b[2J", "../x://y", "X://y", "://y", "file://host/x", "ssh://[/x", string(make([]byte, 5000))} {
		_, err := remote.ParseAddress(text, dir)
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUsage}, text)
	}
}

// Addresses are stored in a readable file and visible in the process list.
func TestAddressesHoldNoPassword(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"postgres://uwf:sesame@db/uwf", "postgres://db/uwf?password=sesame", "postgres://db/uwf?sslpassword=sesame", "x://h/?access_token=sesame", "postgres://uwf:ses/ame@db/uwf",
		"u:sesame@h:path", "u%3asesame@h:path", "me:sesame@h:path", "me%3Asesame@h/path", "me:ses/ame@h:path", "ssh://u%3asesame@h/path",
	} {
		_, err := remote.ParseAddress(text, "/")
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUsage}, text)
		require.NotContains(t, err.Error(), "ame")
	}
	for _, text := range []string{"postgres://db/uwf?passfile=/etc/uwf/pass", `C:\team@home`, "./a:b@c", "dir/a:b@c:d", "me@host:x@y"} {
		_, err := remote.ParseAddress(text, "/")
		require.NoError(t, err, text)
	}
}

// No part of an address becomes an option of ssh or a command of the remote shell.
func TestSSH(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"host:team":                       {"-T", "-o", "ServerAliveInterval=15", "--", "host", "uwf remote serve 'team'"},
		"me@host:/srv/a b":                {"-T", "-o", "ServerAliveInterval=15", "--", "me@host", "uwf remote serve '/srv/a b'"},
		"ssh://me@host:2222/srv/team":     {"-T", "-o", "ServerAliveInterval=15", "-p", "2222", "--", "me@host", "uwf remote serve '/srv/team'"},
		"ssh://host/~/team":               {"-T", "-o", "ServerAliveInterval=15", "--", "host", "uwf remote serve '~/team'"},
		"ssh://[::1]:2222/team":           {"-T", "-o", "ServerAliveInterval=15", "-p", "2222", "--", "::1", "uwf remote serve '/team'"},
		"host:-rf":                        {"-T", "-o", "ServerAliveInterval=15", "--", "host", "uwf remote serve './-rf'"},
		"host:a'; touch $HOME/x; `id` !1": {"-T", "-o", "ServerAliveInterval=15", "--", "host", `uwf remote serve 'a'\''; touch $HOME/x; ` + "`id`" + ` '\!'1'`},
	} {
		a, err := remote.ParseAddress(text, "/")
		require.NoError(t, err, text)
		s, err := a.SSH()
		require.NoError(t, err, text)
		require.Equal(t, want, s.Args(), text)
	}
	for _, text := range []string{
		"ssh://-oProxyCommand=id/x", "-oProxyCommand=id:x", "-l@host:x", "ssh://-l@host/x", "ssh://host%20-o/x", "host -oX:y", "ho$(id)st:x", "ho`id`st:x", "me;id@host:x",
		"ssh://host", "ssh://host/", "host:", "ssh:///x", "ssh://host/x?y=z",
	} {
		a, err := remote.ParseAddress(text, "/")
		if err == nil {
			_, err = a.SSH()
		}
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeUsage}, text)
	}
}

func TestIsAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"host:threads": true, "ann@host:~/threads": true, "ssh://host/threads": true, "/srv/team": true, "./team": true, "../team": true,
		"team": false, "@": false, "01M8GBNH65TEPE2472YR7RJ3QM": false, "@developer@1": false, "": false,
	} {
		require.Equal(t, want, remote.IsAddress(text), text)
	}
}
