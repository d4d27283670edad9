//go:build unix

package decidetest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/tmpfstest"
)

// programs are uwf and the program that traces it.
type programs struct{ uwf, torture string }

// built returns the programs, and builds them if needed.
func built(t *testing.T) programs {
	p := programs{*uwf, *torturer}
	if p.uwf == "" {
		p = programs{filepath.Join(t.TempDir(), "uwf"), filepath.Join(t.TempDir(), "torture")}
		for out, pkg := range map[string]string{p.uwf: "cmd/uwf", p.torture: "internal/torture"} {
			cmd := exec.CommandContext(t.Context(), "go", "build", "-o", out, "../../../../"+pkg)
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			said, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", said)
		}
	}
	return p
}

func TestMain(m *testing.M) { tmpfstest.Main(m) }

// witness is the agent, and the command of command roles. It records outside the home its start and its step.
// Each run creates a file and overwrites a common one.
const witness = `set -e
trap '' PIPE
w=$1
. "$w/do"
echo "$UWF_THREAD $$" >> "$w/paid"
n=$(wc -l < "$w/paid")
echo $n > "f$n"
echo $n > shared
if [ "$cut" = before ]; then kill -9 $PPID; fi
if [ "$fate" = lives ]; then read fate < "$w/gate"; fi
if [ "$fate" = dies ]; then exit 1; fi
if [ "$outcome" = limited ]; then
	echo "{\"error\":\"no more\",\"kind\":\"rate-limit\",\"retryAtMs\":$until}"
	exit 1
fi
if [ "$outcome" = fails ]; then exit 1; fi
status=next
case "$UWF_ROLE" in q*) if [ "$asks" = yes ]; then status='"$SUSPEND"'; fi ;; esac
out=$(printf -- '---\n$status: %s\nreason: why\n---\nDone.\n' "$status" | "$UWF_BIN" step put --output -)
step=${out##*\"stepHash\":\"}
echo "$UWF_THREAD ${step%%\"*}" >> "$w/finished"
printf '%s\n' "$out"
if [ "$cut" = after ]; then kill -9 $PPID; fi
`

const config = `defaultAgent: w
agents:
  w:
    command: sh
    args: ["%[1]s/agent.sh", "%[1]s"]
    onRateLimit: wait
    retry: { attempts: 1 }
`

// cut is an interruption of a command.
type cut struct {
	by    string // before, after: the agent kills uwf; kill, kill all, ENOSPC: the tracer acts at a call; "": no interruption
	fate  string // what the agent that killed uwf does: ends, dies, lives
	at    int
	calls int // observed calls
	hit   bool
	where string // the interrupted call
}

func (c cut) String() string {
	if !c.hit {
		return ""
	}
	switch c.by {
	case "before", "after":
		return fmt.Sprintf("  [the agent kills uwf %s its work, and %s]", c.by, c.fate)
	}
	return fmt.Sprintf("  [%s at call %d: %s]", c.by, c.at, c.where)
}

// traced reports whether the tracer causes the interruption.
func (c cut) traced() bool { return c.by == "kill" || c.by == "kill all" || c.by == "ENOSPC" }

// exited is the result of a uwf command.
type exited struct {
	args   []string
	code   int // -1: it was killed
	stdout string
	stderr string
}

func (e exited) String() string {
	return fmt.Sprintf("uwf %s: exit %d\n    %s\n    %s", strings.Join(e.args, " "), e.code, short(e.stdout), short(e.stderr))
}

func short(s string) string {
	const most = 600
	if s = strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    "); len(s) > most {
		s = s[:most] + "…"
	}
	return s
}

// refused returns the code of the printed error, or "".
func (e exited) refused() string {
	var said struct{ Error json.RawMessage }
	var err struct{ Code string }
	if json.Unmarshal([]byte(e.stdout), &said) != nil || json.Unmarshal(said.Error, &err) != nil {
		return ""
	}
	return err.Code
}

// place is a home with one thread in a repository, and the records of its agents.
type place struct {
	programs
	t    *testing.T
	dir  string // holds the home and the repository; its disk may be full
	out  string // records of the witness
	id   string
	kids []string // in the order of observation
}

// newPlace starts a thread with the roles of a scenario.
func newPlace(t *testing.T, p programs, roles string) *place {
	base, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	at := &place{programs: p, t: t, dir: filepath.Join(base, "disk"), out: filepath.Join(base, "witness")}
	files := map[string]string{
		"witness/agent.sh": witness, "witness/paid": "", "witness/finished": "", "witness/do": "",
		"disk/flow.yaml": workflow("flow", roles), "disk/repo/shared": "0\n", "disk/gitconfig": "[user]\n\tname = u\n\temail = u@example.org\n",
		"disk/home/config.yaml": fmt.Sprintf(config, at.out),
	}
	for role, of := range map[byte]string{'k': "a", 'x': "a", 'X': "a", 'K': "q", 'P': "p"} {
		if strings.IndexByte(roles, role) >= 0 {
			files["disk/child.yaml"] = workflow("child", of)
		}
	}
	for name, text := range files {
		path := filepath.Join(base, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	require.NoError(t, syscall.Mkfifo(at.out+"/gate", 0o600))
	git := at.command("git", "init", "-q")
	require.NoError(t, git.Run())
	git = at.command("sh", "-c", "git add . && git commit -qm start")
	require.NoError(t, git.Run())
	e := at.run("thread", "start", at.dir+"/flow.yaml", "-p", "task", "--workspace", "in-place", "--format", "json")
	var said struct{ Thread string }
	require.NoError(t, json.Unmarshal([]byte(e.stdout), &said), "%s", e)
	at.id = said.Thread
	t.Cleanup(at.end)
	return at
}

// workflow returns a workflow file with roles in sequence.
func workflow(name, roles string) string {
	const data = "{ properties: { $status: { const: next }, reason: {} }, required: [$status], type: object }"
	b := fmt.Sprintf("name: %s\ndescription: d\nroles:\n", name)
	edges := "graph:\n"
	from, statuses, onError := "$START", []string{"_"}, ""
	edge := func(to string) {
		edges += "  " + from + ": {"
		if onError != "" {
			edges += fmt.Sprintf(" $error: { role: %s, prompt: go },", strings.Replace(onError, "next", to, 1))
		}
		for i, status := range statuses {
			edges += fmt.Sprintf("%s %s: { role: %s, prompt: go }", []string{"", ","}[min(i, 1)], status, to)
		}
		edges += " }\n"
	}
	for i, r := range roles {
		role := fmt.Sprintf("%c%d", r, i)
		edge(role)
		from, statuses, onError = role, []string{"next"}, map[rune]string{'e': "next", 'X': "next", 'f': "$FAIL"}[r]
		switch r {
		case 'k', 'K', 'P', 'x', 'X':
			more := map[rune]string{'x': ", onFailure: continue"}[r]
			b += fmt.Sprintf("  %s: { description: d, all: { k: { workflow: ./child.yaml, prompt: go } }, workspace: worktree, merge: true%s }\n", role, more)
			statuses = []string{"done", "failed", "conflict"}
		case 'p':
			b += fmt.Sprintf("  %s: { description: d, person: true, frontmatter: %s }\n", role, data)
		default:
			b += fmt.Sprintf("  %s: { description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: %s }\n", role, data)
		}
	}
	edge("$END")
	return b + edges
}

func (p *place) command(name string, args ...string) *exec.Cmd {
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = p.dir + "/repo"
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "UWF_HOME=" + p.dir + "/home", "NO_COLOR=1", "TMPDIR=" + p.out,
		"GIT_CONFIG_GLOBAL=" + p.dir + "/gitconfig", "GIT_CONFIG_NOSYSTEM=1",
	}
	return cmd
}

// run runs a uwf command until it exits.
func (p *place) run(args ...string) exited {
	p.t.Helper()
	return p.through(p.command(p.uwf, args...), args)
}

func (p *place) through(cmd *exec.Cmd, args []string) exited {
	p.t.Helper()
	read := map[string]func() string{}
	for name, stream := range map[string]func(*os.File){
		"stdout": func(f *os.File) { cmd.Stdout = f }, "stderr": func(f *os.File) { cmd.Stderr = f },
	} { // files, as a surviving agent may hold a pipe open
		path := filepath.Join(p.out, name)
		f, err := os.Create(path)
		require.NoError(p.t, err)
		defer f.Close()
		stream(f)
		read[name] = func() string { text, _ := os.ReadFile(path); return string(text) } // what was written so far
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(p.t, err)
	}
	require.NotErrorIs(p.t, err, context.DeadlineExceeded, "%v does not end", args)
	e := exited{args: args, code: cmd.ProcessState.ExitCode(), stdout: read["stdout"](), stderr: read["stderr"]()}
	for _, sign := range []string{"panic:", "goroutine ", "fatal error:"} {
		require.NotContains(p.t, e.stderr, sign)
	}
	return e
}

// interrupted runs a command with an interruption, and waits for the agents that should end.
func (p *place) interrupted(c *cut, o outcome, asks bool, args ...string) exited {
	p.t.Helper()
	yes := map[bool]string{true: "yes"}
	do := fmt.Sprintf("cut=%s fate=%s outcome=%s asks=%s until=%d\n", c.by, c.fate, [...]string{"finishes", "fails", "limited"}[o], yes[asks], time.Now().Add(time.Hour).UnixMilli())
	if c.traced() {
		do = strings.Replace(do, "cut="+c.by, "cut=", 1)
	}
	require.NoError(p.t, os.WriteFile(p.out+"/do", []byte(do), 0o600))
	if !c.traced() {
		e := p.run(args...)
		c.hit = e.code < 0
		if c.hit && c.fate != "lives" {
			p.wait()
		}
		return e
	}
	file := p.out + "/outcome"
	_ = os.Remove(file) // from the previous command
	plan := []string{"trace", "-under", p.dir, "-at", strconv.Itoa(c.at), "-fault", c.by, "-out", file, "-own=" + strconv.FormatBool(c.by == "kill"), p.uwf}
	e := p.through(p.command(p.torture, append(plan, args...)...), args)
	text, err := os.ReadFile(file)
	require.NoError(p.t, err, "%s", e)
	var said struct {
		Calls, Code int
		WasHit      bool
		Hit         struct{ Name, Path string }
	}
	require.NoError(p.t, json.Unmarshal(text, &said))
	e.code, c.hit, c.calls = said.Code, said.WasHit, said.Calls
	c.where = said.Hit.Name + " " + strings.TrimPrefix(said.Hit.Path, p.dir+"/")
	return e
}

// wait waits for the agents that have outlived uwf.
func (p *place) wait() {
	begun := map[string]bool{p.id: true}
	for _, n := range p.noted("paid") {
		begun[n[0]] = true
	}
	for id := range begun {
		p.run("thread", "wait", id)
	}
}

// release lets the surviving agent end in the given way.
func (p *place) release(fate string) {
	gate, err := os.OpenFile(p.out+"/gate", os.O_RDWR, 0)
	require.NoError(p.t, err)
	defer gate.Close()
	_, err = fmt.Fprintln(gate, fate)
	require.NoError(p.t, err)
	p.wait()
}

// end kills what still runs.
func (p *place) end() {
	for _, pid := range p.agents() {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// noted returns the lines of agents in a file: thread, and a word.
func (p *place) noted(name string) (lines [][2]string) {
	text, err := os.ReadFile(filepath.Join(p.out, name))
	require.NoError(p.t, err)
	for line := range strings.Lines(string(text)) {
		thread, word, _ := strings.Cut(strings.TrimSpace(line), " ")
		lines = append(lines, [2]string{thread, word})
	}
	return lines
}

// without removes the lines of a thread from a file of the home.
func (p *place) without(name, id string) {
	path := filepath.Join(p.dir, "home", name)
	text, err := os.ReadFile(path)
	require.NoError(p.t, err)
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, id) {
			kept.WriteString(line)
		}
	}
	require.NoError(p.t, os.WriteFile(path, []byte(kept.String()), 0o600))
}

// agents returns the processes of running agents by thread.
func (p *place) agents() map[string]int {
	alive := map[string]int{}
	for _, n := range p.noted("paid") {
		pid, err := strconv.Atoi(n[1])
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) // empty if there is no such process, or no /proc
		_, state, _ := strings.Cut(string(stat), ") ")
		if err == nil && syscall.Kill(pid, 0) == nil && !strings.HasPrefix(cmp.Or(state, "R"), "Z") {
			alive[n[0]] = pid
		}
	}
	return alive
}

func (p *place) ctx() context.Context { return p.t.Context() }
