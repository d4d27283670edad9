package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/utilagent/box"
)

// A missing uwf-box is reported once per home.
func TestMissingBoxIsReportedOncePerHome(t *testing.T) {
	t.Parallel()
	if box.Find(box.Profile) != "" {
		t.Skip()
	}
	bin, dirs := t.TempDir(), home.Dirs{Home: filepath.Join(t.TempDir(), "home")}
	said := func(dirs home.Dirs) string {
		text := ""
		New(env.Env{Exe: filepath.Join(bin, "uwf")}, "", dirs, nil, func(warning string) { text += warning }).warnMissingBox()
		return text
	}
	first := said(dirs)
	require.Contains(t, first, box.Install)
	require.Empty(t, said(dirs))
	require.NotEmpty(t, said(home.Dirs{Home: filepath.Join(t.TempDir(), "other")}))
	require.NoError(t, os.WriteFile(filepath.Join(bin, box.Program), nil, 0o755))
	require.Empty(t, said(home.Dirs{Home: t.TempDir()}))
}

func TestConfines(t *testing.T) {
	t.Parallel()
	none := &protocol.SandboxConfig{Mode: protocol.SandboxNone}
	for name, c := range map[string]struct {
		settings protocol.Config
		inv      agentproc.Invocation
		want     bool
	}{
		"a command":        {protocol.Config{}, agentproc.Invocation{Plain: true, Command: "make"}, true},
		"a command, none":  {protocol.Config{Commands: &protocol.CommandsConfig{Sandbox: none}}, agentproc.Invocation{Plain: true}, false},
		"our own agent":    {protocol.Config{}, agentproc.Invocation{Command: "uwf-builtin"}, true},
		"an adapter":       {protocol.Config{}, agentproc.Invocation{Command: "/usr/bin/uwf-claude-code"}, true},
		"an adapter, none": {protocol.Config{Agents: map[string]protocol.Agent{"a": {Sandbox: none}}}, agentproc.Invocation{Alias: "a", Command: "uwf-codex"}, false},
		"a script of ours": {protocol.Config{}, agentproc.Invocation{Command: "uwf-mock"}, false},
		"mine":             {protocol.Config{}, agentproc.Invocation{Command: "mine"}, false},
	} {
		require.Equal(t, c.want, confines(c.settings, c.inv), name)
	}
}
