package engine

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/rundir"
)

// Run is what is known of a thread's last try of a step, in flight or not.
type Run struct {
	Dir       string // where its files are
	Damaged   bool   // its record cannot be read; nothing below is known
	Head      protocol.Hash
	Role      string
	Agent     string // as the user named it
	Command   []string
	Status    string // starting, running, done, failed, rejected or stopped
	Error     string
	Started   time.Time
	Heard     time.Time // when the agent last wrote anything; zero: it has not
	Pid       int       // of the agent
	Alive     bool      // the agent, or who is starting or judging it
	Attended  bool      // a process of ours works on the thread
	Finished  bool      // the agent has left a result
	Stderr    string    // its end, cleaned
	WorkerLog string    // the end of a background worker's log, cleaned
}

// LastRun returns what is known of a thread's last try; nil if there is nothing.
func (e *Engine) LastRun(ctx context.Context, thread string) *Run {
	if checkID(thread) != nil {
		return nil
	}
	dir := e.runDir(thread)
	r := dir.read()
	if !r.damaged && r.Thread == "" {
		return nil
	}
	run := &Run{
		Dir: dir.path, Damaged: r.damaged, Head: r.Head, Role: r.Role, Agent: r.Agent, Command: r.Command,
		Status: string(r.Status), Started: time.UnixMilli(r.StartedAt), Pid: r.Pid,
		Alive: dir.alive(r), Attended: e.locks().Held(ctx, thread),
		Stderr:    e.secrets().Hide(agentproc.Tail(dir.file(rundir.StderrFile))), // it may be in flight
		WorkerLog: agentproc.Tail(dir.file(rundir.LogFile)),
	}
	if r.Error != nil {
		run.Error = r.Error.Message
	}
	_, run.Finished = dir.finished()
	for _, name := range []string{rundir.StdoutFile, rundir.StderrFile, rundir.OutputFile} {
		if info, err := os.Stat(filepath.Join(dir.path, name)); err == nil && info.Size() > 0 && info.ModTime().After(run.Heard) {
			run.Heard = info.ModTime()
		}
	}
	return run
}

// LastCommand is the command of a thread's last try, as the user wrote it; nil if
// it is not known.
func (e *Engine) LastCommand(thread string) []string {
	if checkID(thread) != nil {
		return nil
	}
	return e.runDir(thread).read().Command
}
