package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/convert"
	"github.com/united-workforce/uwf/cmd/uwf-import-original/internal/originaltest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Thread IDs as the original creates them; they are not standard ULIDs.
const (
	idleThread      = "06F70H4802NTQAXBNENTQAXBNC"
	endedThread     = "06F70H4802NTQAXBNENTQAXBNG"
	suspendedThread = "06F70H4802NTQAXBNENTQAXBNM"
	earlyThread     = "06F70H4802NTQAXBNENTQAXBNR"
	fileThread      = "06F70H4802NTQAXBNENTQAXBNW"
	historyThread   = "06F70H4802NTQAXBNENTQAXC00"
	brokenThread    = "06F70H4802NTQAXBNENTQAXC04"
	headlessThread  = "06F70H4802NTQAXBNENTQAXC08"
	shallowThread   = "06F70H4802NTQAXBNENTQAXC0C"
)

// user is a user of the original who switches to uwf.
type user struct {
	*testing.T
	*originaltest.Original
	home string

	workflow cas.Hash
	idle     []cas.Hash // steps of an active thread whose next role is the writer
}

// newUser has a workflow and one thread, which a reviewer has sent back.
func newUser(t *testing.T, layout originaltest.Layout) *user {
	dir := t.TempDir()
	u := &user{T: t, Original: originaltest.New(t, dir, layout), home: filepath.Join(dir, "new")}
	u.workflow = u.Workflow("solve")
	start := u.Start(u.workflow, "Solve it", dir)
	u.idle = append([]cas.Hash{start}, u.Steps("solve", start,
		originaltest.Step{Role: "writer", Status: "done", Answer: "---\n$status: done\n---\nFirst text"},
		originaltest.Step{Role: "reviewer", Status: "rejected", Note: "shorter"})...)
	u.Var("@uwf/registry/solve", u.workflow, nil)
	u.Var("@uwf/thread/"+idleThread, u.idle[2], nil)
	u.Var("@ocas/string", u.Schema("string"), nil)
	return u
}

// run imports and returns the exit status, the report, and stderr.
func (u *user) run(args ...string) (int, convert.Report, string) {
	u.Save()
	var out, errs bytes.Buffer
	before := photograph(u.T, u.Ocas) + photograph(u.T, u.Uwf)
	status := run(u.T.Context(), env.Env{
		Args:    append([]string{"--ocas", u.Ocas, "--uwf", u.Uwf, "--home", u.home}, args...),
		Environ: []string{"HOME=" + filepath.Dir(u.home)}, Dir: filepath.Dir(u.home),
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Now: time.Now,
	})
	require.Equal(u.T, before, photograph(u.T, u.Ocas)+photograph(u.T, u.Uwf), "nothing of the original's changes, and nothing is added to it")
	var report convert.Report
	if out.Len() > 0 {
		require.NoError(u.T, json.Unmarshal(out.Bytes(), &report))
	}
	return status, report, errs.String()
}

// photograph returns the complete state of a directory.
func photograph(t *testing.T, dir string) string {
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		fmt.Fprintln(&all, path, info.Mode(), info.ModTime().UnixNano())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			fmt.Fprintf(&all, "%x\n", sha256.Sum256(data))
		}
		return nil
	}))
	return all.String()
}

func (u *user) store() *fsstore.Store {
	s, err := fsstore.Open(context.Background(), filepath.Join(u.home, "cas"), fsstore.Options{Home: u.home})
	require.NoError(u.T, err)
	return s
}

func (u *user) index() *fileheads.Heads { return fileheads.Open(u.home, durable.OS()) }

// sound checks the whole home with fsck.
func (u *user) sound() {
	report, err := fsck.Run(context.Background(), u.store(), fsck.Options{Home: u.home, Now: time.Now})
	require.NoError(u.T, err)
	require.Empty(u.T, report.Faults)
}

func (u *user) headOf(id string) cas.Hash {
	h, err := u.index().Head(context.Background(), id)
	require.NoError(u.T, err)
	return h
}

func TestEverythingIsImported(t *testing.T) {
	t.Parallel()
	for _, layout := range []originaltest.Layout{originaltest.Flat, originaltest.Nodes} {
		t.Run("layout "+string(layout), func(t *testing.T) {
			t.Parallel()
			u := newUser(t, layout)
			ended := u.Steps("solve", u.idle[0], originaltest.Step{Role: "writer", Status: "done", Later: true}, originaltest.Step{Role: "reviewer", Status: "approved", Later: true})
			u.Var("@uwf/thread/"+endedThread, ended[1], map[string]string{"status": "end", "completedAt": "1780000500000"})
			asks := u.Steps("solve", u.idle[0], originaltest.Step{Role: "writer", Status: "unclear"})
			u.Var("@uwf/thread/"+suspendedThread, asks[0], map[string]string{"status": "suspended", "suspendedRole": "writer", "suspendMessage": "What is meant?"})
			early := u.EarlyWorkflow("early")
			start := u.EarlyStart(early, "An early one")
			first := u.Steps("early", start, originaltest.Step{Role: "writer", Status: "done", Early: true})
			u.Var("@uwf/registry/early", early, nil)
			u.Var("@uwf/registry/later", u.LaterWorkflow("later"), nil)
			u.Var("@uwf/thread/"+earlyThread, first[0], nil)
			// Data that older versions left in files.
			u.AppendHome("workflows.yaml", "older: "+string(u.Workflow("older"))+"\nnot-a-hash: 12\n")
			u.AppendHome("threads.yaml", fileThread+":\n  head: "+string(u.idle[1])+"\n")
			u.AppendHome("history.jsonl", `{"thread":"`+historyThread+`","workflow":"`+string(u.workflow)+`","head":"`+string(ended[1])+`","completedAt":1780000400000,"reason":"cancelled"}`+"\nnonsense\n")
			u.AppendHome("config.yaml", "defaultAgent: mock\nagents:\n  mock: { command: uwf-mock, args: [--mock-data, x.yaml] }\nconcurrency: { maxRunning: 2 }\n")
			u.AppendHome(".env", "KEY=value\n")
			// Nodes of other programs are not imported.
			foreign := u.Text("of another program")

			status, report, _ := u.run("--dry-run")
			require.Equal(t, protocol.CodeCorrupt.ExitCode(), status)
			require.NoDirExists(t, u.home, "a dry run changes nothing")
			status, done, _ := u.run()
			require.Equal(t, protocol.CodeCorrupt.ExitCode(), status, "two lines say nothing sensible")
			report.DryRun = false
			require.Equal(t, report, done, "a dry run says what will be done")
			require.Equal(t, convert.Count{Imported: 4, Failed: 1}, done.Workflows)
			require.Equal(t, convert.Count{Imported: 6}, done.Threads)
			require.Equal(t, convert.Count{Imported: 2}, done.Config)
			require.Len(t, done.Problems, 2)
			require.Contains(t, done.Problems[0].Reason, "line 2")
			prosetest.Text(t, done.Problems[1].Reason)

			ctx := t.Context()
			require.Equal(t, u.idle[2], u.headOf(idleThread), "hashes stay what they are")
			end, err := u.index().Ended(ctx, endedThread)
			require.NoError(t, err)
			require.Equal(t, heads.Ended{Thread: endedThread, Workflow: u.workflow, Head: ended[1], Status: protocol.StatusCompleted, CompletedAt: 1780000500000}, end)
			end, err = u.index().Ended(ctx, historyThread)
			require.NoError(t, err)
			require.Equal(t, protocol.StatusCancelled, end.Status)
			w, err := cas.Read[protocol.Workflow](ctx, u.store(), early)
			require.NoError(t, err)
			require.Equal(t, "You write.", w.Roles["writer"].Goal)
			has, err := u.store().Has(ctx, foreign)
			require.NoError(t, err)
			require.False(t, has)
			u.sound()

			config, err := os.ReadFile(filepath.Join(u.home, "config.yaml"))
			require.NoError(t, err)
			require.Contains(t, string(config), "uwf-mock")
			require.NotContains(t, string(config), "concurrency")

			before := photograph(t, u.home)
			_, again, _ := u.run()
			require.Zero(t, again.Threads.Imported+again.Workflows.Imported+again.Config.Imported+again.Nodes.Imported)
			require.Equal(t, 6, again.Threads.Present)
			require.Equal(t, withoutTimes(before), withoutTimes(photograph(t, u.home)), "a second time changes nothing")
		})
	}
}

// withoutTimes removes the times, because storing a node again updates its time.
func withoutTimes(photo string) string {
	var kept []string
	for line := range strings.Lines(photo) {
		fields := strings.Fields(line)
		kept = append(kept, fields[0])
	}
	return strings.Join(kept, "\n")
}

// A node in our store has the bytes that the original wrote.
func TestNodesKeepTheirBytes(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Nodes)
	status, _, errs := u.run()
	require.Zero(t, status, errs)
	for _, h := range append(u.idle, u.workflow) {
		theirs, err := os.ReadFile(u.Path(h))
		require.NoError(t, err)
		require.Equal(t, theirs, castest.FindRecord(t, u.store().Dir(), h).Body())
	}
}

func TestDamageIsReported(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	broken := u.Steps("solve", u.Start(u.workflow, "broken", "/"),
		originaltest.Step{Role: "writer", Status: "done"}, originaltest.Step{Role: "reviewer", Status: "rejected", Note: "n"})
	u.Var("@uwf/thread/"+brokenThread, broken[1], nil)
	u.Damage(broken[0])
	u.Var("@uwf/thread/"+headlessThread, "0123456789ABC", nil)
	shallow := u.Steps("solve", u.Start(u.workflow, "shallow", "/"), originaltest.Step{Role: "writer", Status: "done", Answer: "the lost answer"})
	u.Var("@uwf/thread/"+shallowThread, shallow[0], nil)
	u.Lose(u.Put(u.Schema("hermes-turn"), map[string]any{"index": 0, "role": "assistant", "content": "the lost answer", "toolCalls": nil, "reasoning": nil}))
	u.Var("@uwf/thread/not-an-id", u.idle[1], nil)
	u.Var("@uwf/registry/gone", "ABCDEFGHJKMNP", nil)
	u.Var("@uwf/registry/step", u.idle[1], nil)

	status, report, _ := u.run()
	require.Equal(t, protocol.CodeCorrupt.ExitCode(), status)
	reasons := map[string]string{}
	for _, p := range report.Problems {
		reasons[p.Name] = p.Reason
	}
	require.Contains(t, reasons[brokenThread], string(broken[0]))
	require.Contains(t, reasons[brokenThread], "corrupt")
	require.Contains(t, reasons[headlessThread], "not found")
	prosetest.Text(t, reasons[shallowThread])
	prosetest.Text(t, reasons["not-an-id"])
	require.Contains(t, reasons["gone"], "not found")
	prosetest.Text(t, reasons["step"])
	require.Len(t, reasons, 6)

	require.Equal(t, u.idle[2], u.headOf(idleThread), "what is whole is brought")
	require.Equal(t, shallow[0], u.headOf(shallowThread), "the chain is whole, so the thread can go on")
	_, err := u.index().Head(t.Context(), brokenThread)
	require.ErrorIs(t, err, heads.ErrNoThread)

	status, again, _ := u.run()
	require.Equal(t, protocol.CodeCorrupt.ExitCode(), status, "what is missing is told every time")
	require.Equal(t, report.Problems, again.Problems)
}

// A killed original may leave a thread under two types.
func TestTheNewestHeadCounts(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	u.Var("@uwf/thread/"+idleThread, u.idle[0], nil) // set last, but a leftover
	u.AppendHome("threads.json", `{"`+idleThread+`": "`+string(u.idle[1])+`"}`)
	status, report, _ := u.run()
	require.Zero(t, status, report.Problems)
	require.Equal(t, u.idle[2], u.headOf(idleThread))

	other := u.Steps("solve", u.idle[0], originaltest.Step{Role: "writer", Status: "unclear"})
	u.AppendHome("threads.yaml", idleThread+": "+string(other[0])+"\n")
	_, report, _ = u.run()
	require.Len(t, report.Problems, 1)
	require.Contains(t, report.Problems[0].Reason, "another head")
}

// Both the original and uwf are used for a while after the first import.
func TestBothContinue(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	_, report, _ := u.run()
	require.Equal(t, 1, report.Threads.Imported)

	further := u.StepsAfter("solve", u.idle[0], u.idle[1:], originaltest.Step{Role: "writer", Status: "done"}, originaltest.Step{Role: "reviewer", Status: "approved"})
	u.Var("@uwf/thread/"+idleThread, further[0], nil)
	_, report, _ = u.run()
	require.Equal(t, 1, report.Threads.Imported)
	require.Equal(t, further[0], u.headOf(idleThread))

	u.Var("@uwf/thread/"+idleThread, further[1], map[string]string{"status": "completed", "completedAt": "5"})
	_, report, _ = u.run()
	require.Equal(t, 1, report.Threads.Imported)
	end, err := u.index().Ended(t.Context(), idleThread)
	require.NoError(t, err)
	require.Equal(t, further[1], end.Head)
	u.sound()
}

func TestOursHasGoneOn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	u := newUser(t, originaltest.Flat)
	u.run()
	s := u.store()
	th, err := thread.Open(ctx, s, u.idle[2])
	require.NoError(t, err)
	b := cas.NewBatch(s, time.Now)
	detail, err := b.Add(ctx, protocol.Detail{Capture: protocol.CaptureFinal, Turns: []protocol.Hash{}})
	require.NoError(t, err)
	next, err := th.Append(ctx, b, protocol.Step{Role: "writer", Agent: "uwf-x", Output: th.Last.Output, Detail: detail, ExtractedBy: protocol.ByValue})
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))
	require.NoError(t, u.index().Move(ctx, idleThread, u.idle[2], next))

	status, report, _ := u.run()
	require.Zero(t, status, report.Problems)
	require.Equal(t, 1, report.Threads.Present)
	require.Equal(t, next, u.headOf(idleThread))
	u.sound()

	further := u.Steps("solve", u.idle[0], originaltest.Step{Role: "writer", Status: "unclear"})
	u.Var("@uwf/thread/"+idleThread, further[0], nil)
	u.Var("@uwf/registry/solve", u.Workflow("another"), nil)
	status, report, _ = u.run()
	require.Equal(t, protocol.CodeCorrupt.ExitCode(), status)
	require.Len(t, report.Problems, 2)
	require.Equal(t, next, u.headOf(idleThread), "nothing that is here is changed")
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	u := newUser(t, originaltest.Flat)
	status, _, errs := u.run("--home", u.Uwf)
	require.Equal(t, protocol.CodeUsage.ExitCode(), status)
	prosetest.Text(t, errs)
	status, _, errs = u.run("--ocas-home", u.Ocas)
	require.Equal(t, protocol.CodeUsage.ExitCode(), status)
	prosetest.Text(t, errs)
	status, _, errs = u.run("--ocas", t.TempDir())
	require.Equal(t, protocol.CodeNotFound.ExitCode(), status)
	prosetest.Text(t, errs)
	status, _, errs = u.run("surplus")
	require.Equal(t, protocol.CodeUsage.ExitCode(), status)
	require.Contains(t, errs, "surplus")

	s, err := fsstore.Open(t.Context(), filepath.Join(u.home, "cas"), fsstore.Options{Home: u.home})
	require.NoError(t, err)
	require.NoError(t, s.Make(t.Context(), 1))
	status, _, errs = u.run()
	require.Equal(t, protocol.CodeInvalid.ExitCode(), status)
	require.Contains(t, errs, "xxh64")
}
