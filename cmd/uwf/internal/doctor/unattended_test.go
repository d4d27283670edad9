package doctor

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/utilagent/box"
)

func unattended(t *testing.T, yaml string, root bool, can config.System, environ ...string) map[string]protocol.Finding {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(yaml), 0o600))
	d := Doctor{
		Env: env.Env{Dir: dir, Environ: append(environ, "PATH="+os.Getenv("PATH"), "HOME="+dir), Now: time.Now}, Dirs: home.Dirs{Home: dir, Store: filepath.Join(dir, "cas")},
		Root: root, Confinement: func() (string, config.System, box.Diagnosis) {
			return "x", can, box.Diagnosis{Why: "x", Do: "install it"}
		},
	}
	found := map[string]protocol.Finding{}
	for _, f := range d.Unattended(t.Context()).Findings {
		require.NotContains(t, found, f.Area, "one line for each check")
		require.Equal(t, f.Severity == protocol.SeverityOK, f.Do == "", "%s: what is not ok has a remedy", f.Area)
		found[f.Area] = f
	}
	require.Len(t, found, 9)
	return found
}

func TestUnattended(t *testing.T) {
	t.Parallel()
	const agent = "defaultAgent: claude\nagents: { claude: { command: uwf-claude-code, onRateLimit: wait } }\n"
	boxed := config.System{Confines: true, Namespaces: true}
	for name, c := range map[string]struct {
		yaml    string
		root    bool
		can     config.System
		environ []string
		area    string
		want    protocol.Severity
	}{
		"nothing set":       {area: "setup", can: boxed, want: protocol.SeverityProblem},
		"no limit":          {yaml: agent, can: boxed, area: "limit", want: protocol.SeverityWarning},
		"a day's limit":     {yaml: agent + "limits: { perDay: { costUsd: 20 } }\n", can: boxed, area: "limit", want: protocol.SeverityOK},
		"no worktree":       {yaml: agent, can: boxed, area: "worktree", want: protocol.SeverityWarning},
		"no notification":   {yaml: agent, can: boxed, area: "notify", want: protocol.SeverityWarning},
		"notification":      {yaml: agent + "notify: { command: [\"true\"] }\n", can: boxed, area: "notify", want: protocol.SeverityOK},
		"not of errors":     {yaml: agent + "notify: { command: [\"true\"], on: [waiting] }\n", can: boxed, area: "notify", want: protocol.SeverityWarning},
		"waits":             {yaml: agent, can: boxed, area: "rate-limit", want: protocol.SeverityOK},
		"stops":             {yaml: "defaultAgent: a\nagents: { a: { command: uwf-codex } }\n", can: boxed, area: "rate-limit", want: protocol.SeverityWarning},
		"a secret":          {yaml: agent, can: boxed, environ: []string{"DEPLOY_TOKEN=abcdefgh12345"}, area: "secrets", want: protocol.SeverityWarning},
		"a login":           {yaml: agent, can: boxed, environ: []string{"ANTHROPIC_API_KEY=abcdefgh12345"}, area: "secrets", want: protocol.SeverityOK},
		"root":              {yaml: agent, can: boxed, root: true, area: "root", want: protocol.SeverityWarning},
		"not root":          {yaml: agent, can: boxed, area: "root", want: protocol.SeverityOK},
		"namespaces":        {yaml: agent, can: boxed, area: "sandbox", want: protocol.SeverityOK},
		"Landlock":          {yaml: agent, can: config.System{Confines: true}, area: "sandbox", want: protocol.SeverityWarning},
		"no sandbox":        {yaml: agent, area: "sandbox", want: protocol.SeverityProblem},
		"sandbox off":       {yaml: agent + "sandbox: { mode: none }\n", can: boxed, area: "sandbox", want: protocol.SeverityWarning},
		"a remote Docker":   {yaml: agent, can: config.System{Confines: true}, environ: []string{"DOCKER_HOST=tcp://example.com:1"}, area: "sockets", want: protocol.SeverityWarning},
		"no one listens":    {yaml: agent, environ: []string{"SSH_AUTH_SOCK=/nowhere"}, area: "sockets", want: protocol.SeverityOK},
		"behind namespaces": {yaml: agent, can: boxed, environ: []string{"DOCKER_HOST=tcp://example.com:1"}, area: "sockets", want: protocol.SeverityOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := unattended(t, c.yaml, c.root, c.can, c.environ...)[c.area]
			require.Equal(t, c.want, f.Severity, "%+v", f)
		})
	}
}

func TestUnattendedFindsSockets(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "s") // a short path: a socket's is at most 108 bytes
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	at := filepath.Join(dir, "agent")
	l, err := net.Listen("unix", at)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	require.Equal(t, "unset SSH_AUTH_SOCK", unattended(t, "", false, config.System{}, "SSH_AUTH_SOCK="+at)["sockets"].Do)
}
