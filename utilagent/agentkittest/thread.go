package agentkittest

import (
	"cmp"
	"context"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/threadid"
)

// Thread is a thread in a temporary home.
type Thread struct {
	ID     string
	Role   string
	Head   protocol.Hash
	Home   string
	Cwd    string // an empty working directory
	RunDir string

	store    cas.Store
	t        testing.TB
	env      env.Env
	scenario Scenario
}

// New creates the thread of a scenario.
func New(t testing.TB, s Scenario) *Thread {
	t.Helper()
	e, err := env.OS()
	require.NoError(t, err)
	th := &Thread{t: t, env: e, scenario: s, Role: cmp.Or(s.Role, "worker"), Home: t.TempDir(), Cwd: t.TempDir()}
	th.ID, err = threadid.New(e.Now(), e.Rand)
	require.NoError(t, err)
	th.RunDir = filepath.Join(th.Home, "runs", th.ID)
	require.NoError(t, os.MkdirAll(th.RunDir, 0o700))
	if s.Config != "" {
		require.NoError(t, os.WriteFile(filepath.Join(th.Home, "config.yaml"), []byte(s.Config), 0o600))
	}
	th.store, err = fsstore.Open(t.Context(), th.storeDir(), fsstore.Options{Home: th.Home})
	require.NoError(t, err)
	th.start()
	for _, past := range s.History {
		th.Precede(past)
	}
	return th
}

// Fork returns a new thread with the same head and home.
func (th *Thread) Fork() *Thread {
	th.t.Helper()
	return th.ForkAt(th.Head)
}

// ForkAt returns a new thread that continues from an earlier node.
func (th *Thread) ForkAt(node protocol.Hash) *Thread {
	th.t.Helper()
	fork := *th
	fork.Head = node
	var err error
	fork.ID, err = threadid.New(th.env.Now(), th.env.Rand)
	require.NoError(th.t, err)
	fork.RunDir = filepath.Join(th.Home, "runs", fork.ID)
	require.NoError(th.t, os.MkdirAll(fork.RunDir, 0o700))
	require.NoError(th.t, fork.index().Add(th.ctx(), fork.ID, fork.Head, heads.Facts{}))
	return &fork
}

// Precede appends a step without running an agent.
func (th *Thread) Precede(p History) {
	th.t.Helper()
	th.step(step.Submission{
		Role: cmp.Or(p.Role, th.Role), Agent: protocol.AgentName(cmp.Or(p.Agent, "past")), SessionID: cmp.Or(p.Session, "past"),
		Output: output(p.Output), ExtractedBy: protocol.ByValue, Answer: p.Content, EdgePrompt: "go", Cwd: th.Cwd,
	})
}

// Suspend appends a step of the role that waits for a person.
func (th *Thread) Suspend(reason string) {
	th.t.Helper()
	s := protocol.NewSuspend(reason)
	th.step(step.Submission{
		Role: th.Role, Agent: protocol.AgentName("past"), SessionID: "past",
		Output: extract.Output{Suspend: &s}, ExtractedBy: protocol.ByValue, Answer: reason, EdgePrompt: "go", Cwd: th.Cwd,
	})
}

func (th *Thread) step(s step.Submission) {
	th.t.Helper()
	ctx := th.ctx()
	at, err := thread.Open(ctx, th.store, th.Head)
	require.NoError(th.t, err)
	w, err := at.Workflow(ctx)
	require.NoError(th.t, err)
	require.Contains(th.t, w.Roles, s.Role)
	s.Type = w.Roles[s.Role].Frontmatter
	made, err := step.Submit(ctx, cas.NewBatch(th.store, th.env.Now), at, s)
	require.NoError(th.t, err)
	th.move(made.StepHash)
}

// start stores the workflow and the start node, and creates the thread.
func (th *Thread) start() {
	th.t.Helper()
	ctx, b := th.ctx(), cas.NewBatch(th.store, th.env.Now)
	schema := th.scenario.Schema
	if schema == nil {
		schema = defaultSchema()
	}
	frontmatter, err := b.AddSchema(ctx, schema)
	require.NoError(th.t, err)
	w, err := b.Add(ctx, th.workflow(frontmatter))
	require.NoError(th.t, err)
	th.Head, err = b.Add(ctx, protocol.Start{Workflow: w, Prompt: th.scenario.Task, Cwd: th.Cwd})
	require.NoError(th.t, err)
	require.NoError(th.t, b.Commit(ctx))
	require.NoError(th.t, th.index().Add(ctx, th.ID, th.Head, heads.Facts{}))
}

func (th *Thread) workflow(frontmatter cas.Hash) protocol.Workflow {
	w := protocol.Workflow{
		Name: "test", Roles: map[string]protocol.Role{th.Role: {Description: "Does the work."}},
		Graph: map[string]protocol.GraphNode{
			protocol.StartNode: {Edges: map[string]protocol.Edge{protocol.DefaultStatus: {Role: th.Role}}},
			th.Role:            {Edges: map[string]protocol.Edge{protocol.DefaultStatus: {Role: protocol.EndNode}}},
		},
	}
	if th.scenario.Workflow != nil {
		w = *th.scenario.Workflow
		w.Roles = maps.Clone(w.Roles)
	}
	for name, role := range w.Roles {
		if role.Frontmatter == "" {
			role.Frontmatter = frontmatter
		}
		if role.Capabilities == nil {
			role.Capabilities = []string{}
		}
		w.Roles[name] = role
	}
	return w
}

// move moves the head. Outside tests, only the engine does this.
func (th *Thread) move(head cas.Hash) {
	th.t.Helper()
	require.NoError(th.t, th.index().Move(th.ctx(), th.ID, th.Head, head))
	th.Head = head
}

func (th *Thread) put(p protocol.Payload) cas.Hash {
	th.t.Helper()
	b := cas.NewBatch(th.store, th.env.Now)
	h, err := b.Add(context.Background(), p)
	require.NoError(th.t, err)
	require.NoError(th.t, b.Put(context.Background()))
	return h
}

func (th *Thread) index() *fileheads.Heads { return fileheads.Open(th.Home, durable.OS()) }

func (th *Thread) storeDir() string { return filepath.Join(th.Home, "cas") }

func output(v any) extract.Output {
	if v == nil {
		v = map[string]any{protocol.StatusKey: "done"}
	}
	return extract.Output{Value: v}
}

func defaultSchema() any {
	return map[string]any{
		"type": "object", "additionalProperties": false, "required": []any{protocol.StatusKey},
		"properties": map[string]any{
			protocol.StatusKey: map[string]any{"enum": []any{"done", "failed"}},
			"summary":          map[string]any{"type": "string"},
		},
	}
}
