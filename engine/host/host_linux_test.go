package host_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/util/tmpfstest"
	"github.com/united-workforce/uwf/utilagent/confine"
	"github.com/united-workforce/uwf/utilagent/mock"
)

// asProgram is set if the test binary acts as a program that embeds the engine. It may also act as an agent.
const asProgram = "HOST_TEST_PROGRAM"

const forgetful = "HOST_TEST_FORGETFUL"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "agent":
		os.Args = append(os.Args[:1], os.Args[2:]...)
		mock.Run()
	case os.Getenv(forgetful) != "":
		forget()
	case os.Getenv(asProgram) != "":
		os.Exit(host.Main("program", program))
	default:
		tmpfstest.Main(m)
	}
}

// program starts a thread in the background, prints its id, and waits until it is killed.
func program(ctx context.Context, process env.Env) error {
	e, err := host.Open(ctx, process, host.Options{})
	if err != nil {
		return err
	}
	s := protocol.Start{Prompt: "task", Cwd: process.Dir}
	started, err := catalog.Of(e).Start(ctx, e, "one.yaml", s, engine.StartOptions{})
	if err != nil {
		return err
	}
	out, err := e.Background(ctx, started.Thread, engine.Work{})
	fmt.Fprintln(process.Stdout, started.Thread, out.Status)
	if err == nil {
		<-ctx.Done()
	}
	return err
}

const workflow = `name: one
description: A role and a command.
roles:
  writer:
    description: Writes.
    goal: Write.
    capabilities: []
    procedure: Write.
    output: A text.
    frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}
  check:
    description: Checks.
    run: [sh, -c, "echo ${UWF_BIN:-none} > bin.txt; echo x > ../outside.txt"]
graph:
  $START: {_: {role: writer, prompt: Write.}}
  writer: {done: {role: check, prompt: Check.}}
  check: {passed: $END, failed: $END}
`

// home returns a home whose agent waits for the file gate, and a directory with the workflow.
func home(t *testing.T) (process env.Env, gate string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	test, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	exe := filepath.Join(dir, "bot") // so that it doesn't confine commands
	programtest.Write(t, exe, test)
	gate = filepath.Join(dir, "gate")
	files := map[string]string{
		"work/one.yaml": workflow,
		"script.yaml":   "steps:\n  - output: \"---\\n$status: done\\n---\\nDone.\\n\"\n",
		"home/config.yaml": fmt.Sprintf("defaultAgent: fake\nagents: {fake: {command: sh, args: [-c, %q, sh]}}\n",
			fmt.Sprintf(`until [ -e %q ]; do sleep 0.05; done; exec %q agent --mock-data %q "$@"`, gate, exe, filepath.Join(dir, "script.yaml"))),
	}
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return env.Env{
		Dir: filepath.Join(dir, "work"), Environ: append(os.Environ(), "UWF_HOME="+filepath.Join(dir, "home"), "PATH=/usr/bin:/bin"),
		Now: time.Now, Rand: rand.Reader, Exe: exe, Stdout: &bytes.Buffer{}, Stderr: &bytes.Buffer{},
	}, gate
}

// If an embedding program is killed while its agent runs, the run continues to the end. The agent doesn't
// need uwf.
func TestARunOutlivesItsProgram(t *testing.T) {
	t.Parallel()
	process, gate := home(t)
	var out, stderr bytes.Buffer
	cmd := exec.Command(process.Exe)
	cmd.Dir, cmd.Env, cmd.Stderr = process.Dir, append(process.Environ, asProgram+"=1"), &stderr
	said, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line := make([]byte, 200)
	n, err := said.Read(line)
	require.NoError(t, err)
	id, status, _ := strings.Cut(strings.TrimSpace(string(line[:n])), " ")
	require.Equal(t, string(protocol.StatusRunning), status, "%s%s%s", line[:n], &out, &stderr)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed

	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	e, err := host.Open(host.Context(t.Context()), process, host.Options{})
	require.NoError(t, err)
	at, err := e.Reader.Wait(t.Context(), id)
	require.NoError(t, err)
	log, _ := os.ReadFile(e.WorkerLog(id))
	require.Equal(t, protocol.StatusCompleted, at.Status, "%s", log)
	require.Contains(t, string(log), "writer")
	bin, err := os.ReadFile(filepath.Join(process.Dir, "bin.txt"))
	require.NoError(t, err)
	require.Equal(t, "none\n", string(bin), "there is no uwf")
	if confine.Level() > 0 {
		require.NoFileExists(t, filepath.Join(process.Dir, "..", "outside.txt"), "commands are confined")
	}
	entries, err := os.ReadDir(e.Reader.Dirs.Logs())
	require.NoError(t, err)
	require.NotEmpty(t, entries, "it keeps a diary")
}

// If main doesn't call host.Main, the program starts itself only once: its worker doesn't start another, and
// its output isn't used as a command's. It clears its arguments.
func TestAProgramIsNotItsOwnWorker(t *testing.T) {
	for _, how := range []string{"background", "command"} {
		t.Run(how, func(t *testing.T) {
			process, gate := home(t)
			require.NoError(t, os.WriteFile(gate, nil, 0o600))
			started := filepath.Join(process.Dir, "..", "started")
			cmd := exec.Command(process.Exe)
			cmd.Dir, cmd.Env = process.Dir, append(process.Environ, forgetful+"="+started, "HOW="+how)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "does not start with Main")
			lines, err := os.ReadFile(started)
			require.NoError(t, err)
			require.LessOrEqual(t, len(lines), len("xx"))
			if how == "command" && confine.Level() > 0 {
				require.Contains(t, string(out), string(protocol.CodeAgent))
				require.NoFileExists(t, filepath.Join(process.Dir, "bin.txt"))
			}
		})
	}
}

// forget is a main without host.Main. Each start appends to the file in the variable forgetful.
func forget() {
	os.Args = os.Args[:1]
	process, err := env.OS()
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(process.Get(forgetful), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			_, err = f.WriteString("x")
		}
	}
	ctx := context.Background()
	var e *engine.Engine
	if err == nil {
		e, err = engine.Open(ctx, process, engine.Options{})
	}
	var started protocol.ThreadStarted
	if err == nil {
		host.Equip(ctx, e, process)
		started, err = catalog.Of(e).Start(ctx, e, "one.yaml", protocol.Start{Prompt: "task", Cwd: process.Dir}, engine.StartOptions{})
	}
	switch {
	case err != nil:
	case process.Get("HOW") == "background":
		_, err = e.Background(ctx, started.Thread, engine.Work{})
	default:
		_, err = e.Do(ctx, started.Thread, engine.Work{})
	}
	fmt.Fprintln(os.Stderr, engine.Code(err), err)
}
