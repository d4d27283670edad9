package config

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	const agents = "agents: { a: { command: c }, b: { command: c, sandbox: { network: all } }, d: { command: c, sandbox: { mode: required } } }\n"
	const overrides = "networkOverrides: { w.r: [x.example], w.v1.r: none, w.all: all }\n"
	for _, c := range []struct{ text, alias, workflow, role, want string }{
		{"", "a", "w", "r", "all"},
		{"", "", "w", "r", "all"},
		{"sandbox: { network: none }", "a", "w", "r", "none"},
		{"sandbox: { network: none }", "", "w", "r", "none"},
		{"sandbox: { network: [a.example, '*.b.example:8080', '127.0.0.1:80'] }", "a", "w", "r", "a.example, *.b.example:8080, 127.0.0.1:80"},
		{agents + "sandbox: { network: none }", "a", "w", "r", "none"},
		{agents + "sandbox: { network: none }", "b", "w", "r", "all"},
		{agents + "sandbox: { network: none }", "d", "w", "r", "none"},
		{"sandbox: { network: none }\ncommands: { sandbox: { network: [p.example] } }", "", "w", "r", "p.example"},
		{"sandbox: { network: none }\ncommands: { sandbox: { network: [p.example] } }", "a", "w", "r", "none"},
		{"sandbox: { network: none }\ncommands: { sandbox: { network: null } }", "", "w", "r", "none"},
		{overrides + agents, "b", "w", "r", "x.example"},
		{overrides, "", "w", "r", "x.example"},
		{overrides, "", "w.v1", "r", "none"},
		{overrides, "", "w", "s", "all"},
		{overrides + "sandbox: { network: none }", "a", "w", "all", "all"},
	} {
		config, err := Parse([]byte(c.text), "config.yaml", process())
		require.NoError(t, err, c.text)
		got := Network(config, c.alias, c.workflow, c.role)
		require.Equal(t, c.want, got.String(), c.text)
		require.Equal(t, c.want == "all", got.All())
	}
}

// A list is set as written, and a keyword without a list.
func TestNetworkIsSet(t *testing.T) {
	t.Parallel()
	key, err := ParseKey("sandbox.network")
	require.NoError(t, err)
	for text, want := range map[string]any{"none": "none", `["a.example"]`: []any{"a.example"}} {
		got, err := key.Value(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = key.Value("{a: b}")
	require.ErrorContains(t, err, "sandbox.network")
}

// A project can't change the user's network access.
func TestNetworkOfAProject(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"sandbox: { network: all }", "networkOverrides: { w.r: all }", "agents: { a: { sandbox: { network: all } } }"} {
		user := protocol.Config{Agents: map[string]protocol.Agent{"a": {Command: "uwf-builtin"}}}
		_, err := mergeProject(user, []byte(text), "config.yaml")
		require.Error(t, err, text)
	}
}
