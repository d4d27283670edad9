package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// bench has the programs and the homes that the rows use.
type bench struct {
	dir              string
	uwf, mock, empty string
	short, long      place // threads of 10 and of 10,000 steps
	crowded          place // a home with 100,000 threads
	floor            string
	n                int
}

// place is a home with one thread.
type place struct{ home, thread string }

const (
	workflowYAML = `name: loop
description: One role that has its turn again and again.
limits: { maxSteps: 1000000 }
roles:
  worker:
    description: Works.
    goal: You work.
    capabilities: []
    procedure: Work.
    output: Something.
    frontmatter:
      type: object
      properties: { $status: { enum: [again, done] }, note: { type: string } }
      required: [$status, note]
graph:
  $START: { _: { role: worker, prompt: "{{{$prompt}}}" } }
  worker:
    again: { role: worker, prompt: "Again: {{{note}}}" }
    done: { role: $END, prompt: "Done." }
`
	scenarioYAML = `repeat: true
steps:
  - role: worker
    output: "---\n$status: again\nnote: a note\n---\nI did something.\n"
`
)

func (b *bench) prepare(ctx context.Context) error {
	for name, text := range map[string]string{"loop.yaml": workflowYAML, "scenario.yaml": scenarioYAML} {
		if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	b.floor = filepath.Join(b.dir, "floor")
	var err error
	if b.short, err = b.chain(ctx, "short", 10); err != nil {
		return err
	}
	if b.long, err = b.chain(ctx, "long", 10_000); err != nil {
		return err
	}
	b.crowded, err = b.crowd(ctx, 100_000)
	return err
}

// chain makes a home whose thread has n steps. The steps are copies of one that
// the mock agent made, written without a process each.
func (b *bench) chain(ctx context.Context, name string, n int) (place, error) {
	p := place{home: filepath.Join(b.dir, name)}
	out, err := b.output(p, "thread", "start", filepath.Join(b.dir, "loop.yaml"), "-p", "task", "--cwd", b.dir, "--format", "text")
	if err != nil {
		return p, err
	}
	p.thread = out
	if err := b.step(p); err != nil {
		return p, err
	}
	s, err := fsstore.Open(ctx, filepath.Join(p.home, "cas"), fsstore.Options{Home: p.home})
	if err != nil {
		return p, err
	}
	x := index.Open(p.home, durable.OS())
	head, err := x.Head(ctx, p.thread)
	if err != nil {
		return p, err
	}
	grown, err := grow(ctx, s, head, n)
	if err != nil {
		return p, err
	}
	return p, x.Move(ctx, p.thread, head, grown)
}

// grow appends copies of a head step until the thread has n steps.
func grow(ctx context.Context, s cas.Store, head cas.Hash, n int) (cas.Hash, error) {
	batch := cas.NewBatch(s, time.Now, nil)
	for {
		t, err := thread.Open(ctx, batch, head)
		if err != nil {
			return "", err
		}
		if t.Len() >= n {
			return head, batch.Put(ctx)
		}
		l := t.Last
		head, err = t.Append(ctx, batch, thread.Next{
			Role: l.Role, Agent: l.Agent, EdgePrompt: l.EdgePrompt, Cwd: l.Cwd, SessionID: l.SessionID,
			Output: l.Output, Detail: l.Detail, Prompt: l.Prompt, ExtractedBy: protocol.ByFrontmatter,
			StartedAtMs: l.StartedAtMs, CompletedAtMs: l.CompletedAtMs,
		})
		if err != nil {
			return "", err
		}
	}
}

// crowd makes a home with n threads by writing the file as uwf writes it.
func (b *bench) crowd(ctx context.Context, n int) (place, error) {
	p, err := b.chain(ctx, "crowded", 1)
	if err != nil {
		return p, err
	}
	head, err := index.Open(p.home, durable.OS()).Head(ctx, p.thread)
	if err != nil {
		return p, err
	}
	var buf bytes.Buffer
	for i := range n {
		fmt.Fprintf(&buf, "01ARZ3NDEKTSV4RRFF%08d: %s\n", i, head)
	}
	path := filepath.Join(p.home, "threads.yaml")
	own, err := os.ReadFile(path)
	if err != nil {
		return p, err
	}
	buf.Write(own)
	return p, os.WriteFile(path, buf.Bytes(), 0o644)
}

// step makes one step with the mock agent.
func (b *bench) step(p place) error {
	_, err := b.output(p, "thread", "step", p.thread, "--agent", b.mock+" --mock-data "+filepath.Join(b.dir, "scenario.yaml"))
	return err
}

// output runs uwf in a home.
func (b *bench) output(p place, args ...string) (string, error) {
	cmd := exec.Command(b.uwf, append([]string{"--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), "UWF_HOME="+p.home, "OCAS_HOME=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("uwf %v: %w: %s", args, err, stderr.String())
	}
	return string(bytes.TrimSpace(out)), nil
}
