package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/stepwork"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// session is what the kit remembers of a conversation, in one small file per
// agent, thread and role: agents must not get each other's ids, and steps of
// different threads at once must not lose each other's. Losing the file costs a
// full prompt, no more.
type session struct {
	Agent     string `json:"agent"`
	Thread    string `json:"thread"`
	Role      string `json:"role"`
	SessionID string `json:"sessionId"`
	// Step is the step that was made in it. It goes on only if that is still the
	// role's last one: else it has seen answers that are not part of the thread.
	Step cas.Hash `json:"step,omitempty"`
	// Head and Rejected, instead, are of an answer that could not be used: the
	// next try at the same head goes on from there.
	Head     cas.Hash `json:"head,omitempty"`
	Rejected string   `json:"rejected,omitempty"`
	// Interrupted, with Head, is of a try that has not ended: a sum of the
	// instruction that it follows. Another instruction is another task.
	Interrupted string `json:"interrupted,omitempty"`

	since cas.Hash // the node up to which the session knows the thread
	fork  bool     // it belongs to the thread that this one was forked from
}

// session finds the session that the run goes on in; the zero value if there is none.
func (k *kit) session(ctx context.Context) (session, error) {
	if !k.opts.Resumes {
		return session{}, nil
	}
	s, err := k.candidate(ctx)
	if err != nil || s.SessionID == "" {
		return session{}, err
	}
	c, err := k.config(ctx)
	if err != nil {
		return session{}, err
	}
	if resume := c.Agents[k.alias()].Resume; resume != nil && !*resume {
		return session{}, nil
	}
	return s, nil
}

func (k *kit) candidate(ctx context.Context) (session, error) {
	s, err := k.remembered()
	if err != nil {
		return session{}, err
	}
	if s.Rejected != "" || s.Interrupted != "" {
		s.since = k.thread.Head
		return s, nil
	}
	if s.SessionID == "" && !k.opts.ForksSessions {
		return session{}, nil
	}
	last, found, err := stepwork.LastStep(ctx, k.thread, k.inv.role)
	switch {
	case err != nil || !found:
		return session{}, err
	case s.SessionID != "" && s.Step == last.Hash:
		s.since = last.Hash
		return s, nil
	case s.SessionID == "" && last.Agent == protocol.AgentName(k.opts.Name):
		return session{SessionID: last.SessionID, since: last.Hash, fork: true}, nil
	}
	return session{}, nil
}

// remembered reads the file. One that is damaged or of another head is as good as none.
func (k *kit) remembered() (session, error) {
	data, err := os.ReadFile(k.sessionFile())
	if errors.Is(err, fs.ErrNotExist) {
		return session{}, nil
	}
	if err != nil {
		return session{}, fmt.Errorf("session: %w", err)
	}
	var s session
	if json.Unmarshal(data, &s) != nil || s.Agent != protocol.AgentName(k.opts.Name) ||
		s.Thread != k.inv.thread || s.Role != k.inv.role {
		return session{}, nil
	}
	if s.Rejected+s.Interrupted != "" && s.Head != k.thread.Head {
		return session{}, nil
	}
	if s.Interrupted != "" && s.Interrupted != edgeSum(k.edge) {
		return session{}, nil
	}
	return s, nil
}

// edgeSum tells one instruction from another. It is never empty.
func edgeSum(edge string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(edge)) // never fails
	return fmt.Sprintf("%016x", sum.Sum64())
}

// keep remembers a session. A step is not lost because its session is, so a
// failure is only told.
func (k *kit) keep(s session) {
	if !k.opts.Resumes || s.SessionID == "" {
		return
	}
	s.Agent, s.Thread, s.Role = protocol.AgentName(k.opts.Name), k.inv.thread, k.inv.role
	if err := replace(durable.OS(), k.sessionFile(), s); err != nil {
		fmt.Fprintf(k.env.Stderr, "%s: the session cannot be continued later: %v\n", s.Agent, err)
	}
}

// forget removes the memory of a session.
func (k *kit) forget() {
	if err := durable.OS().Remove(k.sessionFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintf(k.env.Stderr, "%s: %v\n", protocol.AgentName(k.opts.Name), err)
	}
}

// replace writes the file in one piece, without a flush: it is only a cache.
func replace(fsys durable.FS, path string, s session) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp, err := fsys.WriteTemp(path, append(data, '\n'), 0o600, durable.NoFlush)
	if err != nil {
		return err
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(err, fsys.Remove(temp))
	}
	return nil
}

// sessionFile is readable by a person; the sum keeps apart what cleaning or a
// file system that folds case would throw together.
func (k *kit) sessionFile() string {
	sum := fnv.New32a()
	fmt.Fprintf(sum, "%s\x00%s", k.inv.thread, k.inv.role)
	name := fmt.Sprintf("%s.%s-%08x.json", fileName(k.inv.thread), fileName(k.inv.role), sum.Sum32())
	return filepath.Join(k.dirs.Sessions(), fileName(protocol.AgentName(k.opts.Name)), name)
}

// fileName keeps what every file system takes.
func fileName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 60)]
}
