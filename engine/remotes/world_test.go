package remotes_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/threadid"
)

// side is a home that is linked to a remote.
type side struct {
	*remotes.Link
	t    *testing.T
	dir  string
	said bytes.Buffer
	// files are recorded in the steps it makes.
	files *protocol.Files
}

func newSide(t *testing.T, r remote.Remote) *side {
	t.Helper()
	dir := t.TempDir()
	s, err := fsstore.Open(context.Background(), filepath.Join(dir, "cas"), fsstore.Options{Home: dir})
	require.NoError(t, err)
	x := fileheads.Open(dir, durable.OS())
	out := &side{t: t, dir: dir}
	out.Link = &remotes.Link{
		Name: "team", Remote: r, Store: s, Heads: x, Holder: t.Name(),
		Warn: func(text string) { fmt.Fprintln(&out.said, text) },
		Engine: &engine.Engine{Reader: status.Reader{
			Env: env.Env{Now: time.Now, Rand: rand.Reader, Dir: dir, Environ: os.Environ()}, Dirs: home.Dirs{Home: dir, Store: filepath.Join(dir, "cas")},
			FS: durable.OS(), Store: s, Heads: x,
		}},
	}
	return out
}

func (s *side) batch() *cas.Batch { return cas.NewBatch(s.Store, time.Now) }

// workflow stores the workflow of all threads.
func (s *side) workflow() (hash, schema cas.Hash) {
	s.t.Helper()
	ctx := context.Background()
	b := s.batch()
	schema, err := b.AddSchema(ctx, map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}})
	require.NoError(s.t, err)
	hash, err = b.Add(ctx, protocol.Workflow{
		Name: "w", Description: "d",
		Roles: map[string]protocol.Role{"r": {Description: "d", Goal: "g", Procedure: "p", Output: "o", Capabilities: []string{}, Frontmatter: schema}},
		Graph: map[string]protocol.GraphNode{},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, b.Commit(ctx))
	return hash, schema
}

// start starts a thread.
func (s *side) start() string {
	s.t.Helper()
	ctx := context.Background()
	workflow, _ := s.workflow()
	id, err := threadid.New(time.Now(), rand.Reader)
	require.NoError(s.t, err)
	b := s.batch()
	start, err := b.Add(ctx, protocol.Start{Workflow: workflow, Prompt: "prompt of " + id, Cwd: "/"})
	require.NoError(s.t, err)
	require.NoError(s.t, b.Commit(ctx))
	require.NoError(s.t, s.Heads.Add(ctx, id, start, heads.Facts{}))
	return id
}

// made stores a step after a head.
func (s *side) made(head cas.Hash, n int) cas.Hash {
	s.t.Helper()
	ctx := context.Background()
	_, schema := s.workflow()
	chain, err := thread.Open(ctx, s.Store, head)
	require.NoError(s.t, err)
	b := s.batch()
	out, err := b.AddValue(ctx, schema, map[string]any{"n": n})
	require.NoError(s.t, err)
	turn, err := b.Add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: fmt.Sprintf("turn %d after %s", n, head)})
	require.NoError(s.t, err)
	detail, err := b.Add(ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []cas.Hash{turn}})
	require.NoError(s.t, err)
	prompt, err := b.Add(ctx, protocol.Text(fmt.Sprintf("what to do as %d", n)))
	require.NoError(s.t, err)
	next, err := chain.Append(ctx, b, protocol.Step{
		Role: "r", Agent: "uwf-test", EdgePrompt: "go", Cwd: "/", SessionID: "s", Output: out, Detail: detail, Prompt: &prompt, ExtractedBy: protocol.ByValue, Files: s.files,
	})
	require.NoError(s.t, err)
	require.NoError(s.t, b.Commit(ctx))
	return next
}

// step makes a step of a local thread and moves the head.
func (s *side) step(id string, n int) cas.Hash {
	s.t.Helper()
	at := s.head(id)
	next := s.made(at, n)
	require.NoError(s.t, s.Heads.Move(context.Background(), id, at, next))
	return next
}

// shared makes a step of a thread on the remote.
func (s *side) shared(id string, n int) error {
	return s.With(context.Background(), id, "", remotes.Options{}, func(ctx context.Context, e *engine.Engine) error {
		at := s.head(id)
		return e.Reader.Heads.Move(ctx, id, at, s.made(at, n))
	})
}

func (s *side) head(id string) cas.Hash {
	s.t.Helper()
	h, err := s.Heads.Head(context.Background(), id)
	require.NoError(s.t, err)
	return h
}

func (s *side) facts(id string) heads.Facts {
	s.t.Helper()
	f, err := s.Heads.Facts(context.Background(), id)
	require.NoError(s.t, err)
	return f
}

// push pushes one thread and returns the outcome; pull pulls it.
func (s *side) push(id string) (string, error) {
	done, err := s.Push(context.Background(), []string{id}, remotes.PushOptions{})
	if len(done) == 0 {
		return "", err
	}
	return done[len(done)-1].Result, err
}

func (s *side) pull(id string) (string, error) {
	done, err := s.Pull(context.Background(), []string{id}, remotes.PullOptions{})
	if len(done.Threads) == 0 {
		return "", err
	}
	return done.Threads[0].Result, err
}
