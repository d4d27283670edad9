package slot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// said is one output of a test's process.
type said struct {
	Out  string
	Code protocol.Code
	Raw  string // the literal output
	Hang bool   // until it gets a signal
	// Machine: reports a failure of the machine. Notice: leaves a notice to be sent.
	Machine, Notice bool
}

// TestMain lets the test binary also act as that process: it prints the outputs from a file one after the
// other, and records its requests.
func TestMain(m *testing.M) {
	dir := os.Getenv("SCRIPT")
	if dir == "" {
		os.Exit(m.Run())
	}
	os.Exit(script(dir))
}

func script(dir string) int {
	asked, _ := os.ReadFile(filepath.Join(dir, "asked"))
	text, _ := os.ReadFile(filepath.Join(dir, "says"))
	var all []said
	_ = json.Unmarshal(text, &all)
	say := all[min(strings.Count(string(asked), "\n"), len(all)-1)]
	config, _ := os.ReadFile(filepath.Join(os.Getenv("UWF_HOME"), "config.yaml"))
	_ = os.WriteFile(filepath.Join(os.Getenv("UWF_HOME"), "left"), nil, 0o600)
	objects := filepath.Join(os.Getenv("UWF_HOME"), "git", "imported-sha1")
	_ = os.MkdirAll(objects, 0o700)
	_ = os.WriteFile(filepath.Join(objects, fmt.Sprint(strings.Count(string(asked), "\n"))), nil, 0o600)
	f, _ := os.OpenFile(filepath.Join(dir, "asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	_, _ = fmt.Fprintln(f, strings.Join(append(os.Args[1:], string(config)), " "))
	_ = f.Close()
	if say.Hang {
		select {}
	}
	if say.Notice {
		outbox := filepath.Join(os.Getenv("UWF_HOME"), "notify", "outbox")
		_ = os.MkdirAll(outbox, 0o700)
		_ = os.WriteFile(filepath.Join(outbox, "1.command"), nil, 0o600)
	}
	if say.Raw != "" {
		fmt.Print(say.Raw)
		return 1
	}
	var answer Answer
	if say.Out != "" {
		_ = json.Unmarshal([]byte(say.Out), &answer.Out)
	}
	if say.Code != "" {
		answer.Error = &Problem{Code: say.Code, Message: "secret words", Machine: say.Machine}
	}
	_ = json.NewEncoder(os.Stdout).Encode(answer)
	return say.Code.ExitCode()
}

// saying returns a pool whose processes print the outputs.
func saying(t *testing.T, change func(*Config), all ...said) (p *Pool, asked func() []string) {
	t.Helper()
	dir, home := t.TempDir(), t.TempDir()
	text, err := json.Marshal(all)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "says"), text, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.yaml"), []byte("mine"), 0o600))
	exe, err := os.Executable()
	require.NoError(t, err)
	c := Config{Exe: exe, Dir: t.TempDir(), Home: home, Slots: 1, Environ: append(os.Environ(), "SCRIPT="+dir), Grace: 10 * time.Second, Queue: "uwf", Now: time.Now}
	if change != nil {
		change(&c)
	}
	p, err = Open(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p, func() []string {
		text, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

const thread = "01M7ZFX8PJZJHF9BS8N8CK2AKX"

// at returns the output for a thread with that status.
func at(status protocol.Status, more string) string {
	return fmt.Sprintf(`{"thread":%q,"head":"E3M7FDBXM3MVW","workflowName":"w","status":%q%s}`, thread, status, more)
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	request := flow.Request{Remote: "team", Thread: thread, Expect: "E3M7FDBXM3MVV"}
	for name, c := range map[string]struct {
		say   said
		want  flow.Outcome
		stuck string // type of the error, if a retry wouldn't help
		err   string
	}{
		"a step":         {say: said{Out: at("idle", `,"stepHash":"E3M7FDBXM3MVW","currentRole":"r"`)}, want: flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "idle", Made: true}},
		"the end":        {say: said{Out: at("completed", `,"stepHash":"E3M7FDBXM3MVW"`)}, want: flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "completed", Made: true}},
		"a question":     {say: said{Out: at("suspended", ""), Code: protocol.CodeSuspended}, want: flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "suspended"}},
		"rate-limited":   {say: said{Out: at("rate-limited", `,"rateLimitedUntil":17`)}, want: flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "rate-limited", Until: 17}},
		"children":       {say: said{Out: at("waiting-for-children", `,"parallel":2,"children":[{"key":"a","thread":"A","status":"completed"},{"key":"b","thread":"B","status":"idle"}]`)}, want: flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "waiting-for-children", Parallel: 2, Children: []flow.Child{{Thread: "B", Status: "idle"}}}},
		"moved":          {say: said{Code: protocol.CodeHeadMoved}, want: flow.Outcome{Status: "idle"}},
		"agent failed":   {say: said{Out: at("error", ""), Code: protocol.CodeAgent}, stuck: flow.Failed},
		"limit":          {say: said{Out: at("suspended", ""), Code: protocol.CodeLimit}, stuck: flow.Budget},
		"damaged":        {say: said{Code: protocol.CodeCorrupt}, stuck: flow.Broken},
		"no agent":       {say: said{Code: protocol.CodeNotFound}, stuck: flow.Refused},
		"a wrong config": {say: said{Code: protocol.CodeInvalid}, stuck: flow.Refused},
		"a newer uwf":    {say: said{Code: protocol.CodeUnsupportedVersion}, err: "unsupported-version"},
		"leased":         {say: said{Code: protocol.CodeLocked}, err: "lease"},
		"remote is gone": {say: said{Code: protocol.CodeFailed}, err: "failed"},
		"a crash":        {say: said{Raw: "panic"}, err: "machine"},
		"nonsense":       {say: said{Raw: "<html>"}, err: "machine"},
		"another thread": {say: said{Out: `{"thread":"B","status":"idle"}`}, err: "another thread"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, asked := saying(t, nil, c.say)
			out, err := p.Step(t.Context(), request, "uwf")
			switch {
			case c.stuck != "":
				var stuck *flow.StuckError
				require.ErrorAs(t, err, &stuck)
				require.Equal(t, c.stuck, stuck.Type)
				require.Contains(t, stuck.Message, "uwf thread show "+thread+" --remote team")
				require.Contains(t, stuck.Message, "uwf-temporal run --thread "+thread+" --remote team")
			case c.err != "":
				require.ErrorContains(t, err, c.err)
				require.NotErrorAs(t, err, new(*flow.StuckError))
			default:
				require.NoError(t, err)
				require.Equal(t, c.want, out)
			}
			if err != nil {
				require.NotContains(t, err.Error(), "secret words", "only ids and statuses go through Temporal")
			}
			if c.say.Code != protocol.CodeFailed {
				require.Len(t, asked(), 1)
			}
			require.Equal(t, Argument+` {"do":"step","thread":"`+thread+`","remote":"team","expect":"E3M7FDBXM3MVV"} mine`, asked()[0])
		})
	}
}

// An agent isn't run again if only the remote could not be reached.
func TestAStepIsTakenThereLater(t *testing.T) {
	t.Parallel()
	p, asked := saying(t, nil,
		said{Out: at("idle", `,"stepHash":"E3M7FDBXM3MVW"`), Code: protocol.CodeFailed},
		said{Code: protocol.CodeFailed},
		said{Out: "{}"})
	out, err := p.Step(t.Context(), flow.Request{Remote: "team", Thread: thread}, "uwf")
	require.NoError(t, err)
	require.Equal(t, flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "idle", Made: true}, out)
	require.Len(t, asked(), 3)
	require.Contains(t, asked()[2], `{"do":"push","thread":"`+thread+`","remote":"team"}`)
}

// The worker that made the last step was killed before it reported it.
func TestTheEndIsFound(t *testing.T) {
	t.Parallel()
	p, asked := saying(t, nil, said{Code: protocol.CodeFailed}, said{Out: at("completed", `,"done":true`)})
	request := flow.Request{Remote: "team", Thread: thread, Expect: "E3M7FDBXM3MVV"}
	out, err := p.Step(t.Context(), request, "uwf")
	require.NoError(t, err)
	require.Equal(t, flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "completed"}, out)
	require.Contains(t, asked()[1], `{"do":"show","thread":"`+thread+`","remote":"team"}`)

	p, _ = saying(t, nil, said{Code: protocol.CodeFailed}, said{Out: at("completed", `,"done":false`)})
	_, err = p.Step(t.Context(), request, "uwf")
	require.Error(t, err, "the remote does not know yet")
}

func TestRoles(t *testing.T) {
	t.Parallel()
	queues := func(c *Config) { c.Queues = map[string]map[string]string{"w": {"trainer": "gpu"}} }
	request := flow.Request{Remote: "team", Thread: thread}

	p, asked := saying(t, queues, said{Out: at("idle", `,"currentRole":"trainer"`)})
	out, err := p.Step(t.Context(), request, "uwf")
	require.NoError(t, err)
	require.Equal(t, flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "idle", Queue: "gpu", Routed: true}, out)
	require.Len(t, asked(), 1)
	require.Contains(t, asked()[0], `"do":"show"`)

	p, asked = saying(t, queues, said{Out: at("idle", `,"currentRole":"trainer"`)}, said{Out: at("idle", `,"currentRole":"other","stepHash":"E3M7FDBXM3MVW"`)})
	out, err = p.Step(t.Context(), request, "gpu")
	require.NoError(t, err)
	require.Equal(t, flow.Outcome{Head: "E3M7FDBXM3MVW", Status: "idle", Made: true, Queue: "uwf", Routed: true}, out)
	require.Len(t, asked(), 2)
}

// Only waiting threads are polled. Their workflows get a signal once they have moved.
func TestAnswersAreSeen(t *testing.T) {
	t.Parallel()
	p, _ := saying(t, nil, said{Out: at("suspended", ""), Code: protocol.CodeSuspended})
	request := flow.Request{Remote: "team", Thread: thread, Above: []string{"P"}}
	_, err := p.Step(t.Context(), request, "uwf")
	require.NoError(t, err)
	require.Equal(t, []flow.Request{request}, p.Waiting())
	// "": the remote is unreachable. Temporal is unreachable for the first signal.
	stands := []protocol.Hash{"E3M7FDBXM3MVW", "", "E3M7FDBXM3MVX", "E3M7FDBXM3MVX"}
	away := true
	look := func(_ context.Context, id string) (head protocol.Hash, err error) {
		require.Equal(t, thread, id)
		if head, stands = stands[0], stands[1:]; head == "" {
			err = errors.New("no route")
		}
		return head, err
	}
	signals := make(chan flow.Request)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		p.Watch(ctx, time.Millisecond, look, func(r flow.Request) bool {
			defer func() { away = false }()
			if !away {
				signals <- r
			}
			return !away
		})
		close(ended)
	}()
	require.Equal(t, request, <-signals)
	stop()
	<-ended
	require.Empty(t, stands)
	require.Empty(t, p.Waiting())
}

// A thread that cannot be read at the remote doesn't hide the answers of others.
func TestAnswersAreSeenDespiteADamagedThread(t *testing.T) {
	t.Parallel()
	p, err := Open(t.Context(), Config{Dir: t.TempDir(), Slots: 1, Now: time.Now})
	require.NoError(t, err)
	for _, id := range []string{"damaged", "answered", "damaged, too"} {
		p.note(flow.Request{Remote: "team", Thread: id}, flow.Outcome{Status: protocol.StatusSuspended, Head: "E3M7FDBXM3MVW"})
	}
	ctx, stop := context.WithCancel(t.Context())
	looks := 0
	p.Watch(ctx, time.Millisecond, func(_ context.Context, id string) (protocol.Hash, error) {
		if looks++; looks == 10 {
			stop()
		}
		if id == "answered" {
			return "E3M7FDBXM3MVX", nil
		}
		return "", errors.New("its row is damaged")
	}, func(r flow.Request) bool {
		require.Equal(t, "answered", r.Thread)
		return true
	})
	require.Len(t, p.Waiting(), 2)
	require.NoError(t, p.Close())
}

// A step that fails because of the machine is returned, and the machine pauses. After failures of several
// threads in a row, the worker exits. The count restarts after a success, and the same thread counts once.
func TestMachine(t *testing.T) {
	t.Parallel()
	var lines []Made
	broken, fine := said{Code: protocol.CodeAgent, Machine: true}, said{Out: at("idle", `,"stepHash":"E3M7FDBXM3MVW"`)}
	p, _ := saying(t, func(c *Config) { c.Made = func(m Made) { lines = append(lines, m) } },
		broken, broken, fine, broken, broken, broken, broken, broken)
	now := time.Now()
	p.health.now = func() time.Time { return now }
	step := func(id string) error {
		now = now.Add(time.Hour) // let the pause pass
		until, _ := p.health.Paused()
		require.Zero(t, until)
		_, err := p.Step(t.Context(), flow.Request{Remote: "team", Thread: id}, "uwf")
		return err
	}
	unable := func(id string, pause time.Duration) {
		t.Helper()
		err := step(id)
		require.Error(t, err)
		require.NotErrorAs(t, err, new(*flow.StuckError))
		require.NotContains(t, err.Error(), "secret words")
		until, reason := p.health.Paused()
		require.Equal(t, now.Add(pause), until)
		require.Contains(t, reason, "secret words")
	}
	unable(thread, firstPause)
	unable(thread, firstPause) // the count restarts
	require.NoError(t, step(thread))
	for n := range mostFailed {
		require.Empty(t, p.Health().Broken())
		unable(fmt.Sprint("T", n), min(firstPause<<n, longestPause))
	}
	require.Error(t, <-p.Health().Broken())
	require.Len(t, lines, 3+mostFailed)
	require.True(t, lines[0].Machine)
	require.Equal(t, protocol.CodeAgent, lines[0].Code)
	require.Equal(t, Made{
		AtMs: lines[2].AtMs, Thread: thread, Step: "E3M7FDBXM3MVW", Status: "idle", TookMs: lines[2].TookMs, Workflow: "w",
	}, lines[2])
}

// The home of a step is kept until its notices are sent. The next step doesn't wait for that.
func TestNotices(t *testing.T) {
	t.Parallel()
	p, _ := saying(t, nil, said{Out: at("idle", ""), Notice: true}, said{Out: at("idle", "")})
	for range 2 {
		_, err := p.Step(t.Context(), flow.Request{Remote: "team", Thread: thread}, "uwf")
		require.NoError(t, err)
	}
	left, err := filepath.Glob(filepath.Join(p.dir, "slot-*", "home", "notify", "outbox", "*"))
	require.NoError(t, err)
	require.Len(t, left, 1)
	require.NoError(t, os.Remove(left[0]))
	p.leaving.Wait()
	left, err = filepath.Glob(filepath.Join(p.dir, "slot-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestStopped(t *testing.T) {
	t.Parallel()
	p, asked := saying(t, nil, said{Hang: true})
	ctx, stop := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := p.Step(ctx, flow.Request{Remote: "team", Thread: thread}, "uwf")
		failed <- err
	}()
	require.Eventually(t, func() bool { return len(asked()[0]) > 0 }, time.Minute, time.Millisecond)
	stop()
	require.ErrorIs(t, <-failed, context.Canceled)
}

func TestHomes(t *testing.T) {
	t.Parallel()
	p, _ := saying(t, nil, said{Out: at("idle", "")})
	for range 2 { // with one slot, so it must be freed
		_, err := p.Step(t.Context(), flow.Request{Remote: "team", Thread: thread}, "uwf")
		require.NoError(t, err)
	}
	homes, err := filepath.Glob(filepath.Join(p.dir, "slot-*"))
	require.NoError(t, err)
	require.Empty(t, homes, "nothing of one thread is left to the next")
	require.FileExists(t, filepath.Join(p.dir, "nodes-1-files", "slot-0", "imported-sha1", "0"), "but for what it would bring again")
	require.FileExists(t, filepath.Join(p.dir, "nodes-1-files", "slot-0", "imported-sha1", "1"))

	at, err := p.take(t.Context())
	require.NoError(t, err)
	lock := filepath.Join(at.home(), "ephemeral.lock")
	_, err = durable.TryLock(lock)
	require.ErrorIs(t, err, durable.ErrLocked, "the collector of its store counts it as long as it is there")
	at.leave()
	require.NoFileExists(t, lock)
}

func TestWorkersThatHaveGoneAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	gone, alive := filepath.Join(dir, "worker-gone"), filepath.Join(dir, "worker-alive")
	for _, d := range []string{gone, alive} {
		require.NoError(t, os.MkdirAll(filepath.Join(d, "slot-0"), 0o700))
	}
	held, err := durable.TryLock(filepath.Join(alive, "lock"))
	require.NoError(t, err)
	defer func() { require.NoError(t, held.Unlock()) }()
	p, err := Open(t.Context(), Config{Dir: dir, Slots: 1, Now: time.Now})
	require.NoError(t, err)
	require.NoDirExists(t, gone)
	require.DirExists(t, alive, "its process has outlived its worker, perhaps")
	require.NoError(t, p.Close())
	require.NoDirExists(t, p.dir)
}

func TestStoresDoNotGrowForEver(t *testing.T) {
	t.Parallel()
	p, err := Open(t.Context(), Config{Dir: t.TempDir(), Slots: 1, Now: time.Now})
	require.NoError(t, err)
	first := p.borrow()
	require.NoError(t, os.Mkdir(first.dir, 0o700))
	for range perStore - 1 {
		p.giveBack(p.borrow())
	}
	second := p.borrow()
	require.NotEqual(t, first.dir, second.dir)
	require.DirExists(t, first.dir, "a step still uses it")
	p.giveBack(first)
	require.NoDirExists(t, first.dir)
	require.NoError(t, p.Close())
}

// What an ended worker has left, removable or not, keeps no worker from starting.
func TestLeftoversDoNotKeepAWorkerFromStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, prefix+"odd", "lock"), 0o700)) // a directory cannot be locked
	modules := filepath.Join(dir, prefix+"old", "slot-0-1", "work", "mod")           // as go leaves it
	require.NoError(t, os.MkdirAll(modules, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(modules, "go.mod"), nil, 0o400))
	require.NoError(t, os.Chmod(modules, 0o500))
	var logged []string
	p, err := Open(t.Context(), Config{Dir: dir, Slots: 1, Now: time.Now, Log: func(text string) { logged = append(logged, text) }})
	require.NoError(t, err)
	require.NoDirExists(t, filepath.Join(dir, prefix+"old"))
	require.Len(t, logged, 1)
	require.Contains(t, logged[0], prefix+"odd")
	require.NoError(t, p.Close())
}
