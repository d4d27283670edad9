package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
)

// lie is an agent, as a shell script, and how the step with it must end. In the
// script $HEAD is what the step has to follow, $OTHER a step of another thread,
// and agent our own, honest one.
type lie struct {
	name, script string
	flags        []string
	code         int
	says         string // in the error
}

// lies are what agents can print, return, write or leave behind.
func lies() []lie {
	short := []string{"--timeout", "1s"}
	return []lie{
		{"says nothing", "exit 0", nil, exitAgent, ""},
		{"fails", "echo why >&2; exit 3", nil, exitAgent, "why"},
		{"does its work and fails", "agent; exit 3", nil, exitAgent, ""},
		{"prints noise", "head -c 100000 /dev/urandom", nil, exitAgent, ""},
		{"prints half a result", `agent | head -c 40`, nil, exitAgent, ""},
		{"names the head itself", `echo "$HEAD"`, nil, exitAgent, ""},
		{"names a step of another thread", `echo "$OTHER"`, nil, exitAgent, ""},
		{"names a node that is not there", "echo 0000000000000", nil, exitAgent, ""},
		{"names something that is no hash", `echo '{"stepHash":"../../etc/passwd"}'`, nil, exitAgent, ""},
		{"names a number", `echo '{"stepHash":12}'`, nil, exitAgent, ""},
		{"prints JSON of another kind", `echo '[[[[[[]]]]]]'`, nil, exitAgent, ""},
		{"writes much to stderr", "head -c 100000000 /dev/zero >&2; exit 1", nil, exitAgent, ""},
		{"writes much to stdout", "yes x | head -c 100000000; exit 1", nil, exitAgent, ""},
		{"writes much, then works", "head -c 50000000 /dev/zero >&2; yes | head -c 50000000; agent", nil, 0, ""},
		{"stops itself", "kill -STOP $$; agent", short, exitTimeout, ""},
		{"hangs", "sleep 1000", short, exitTimeout, ""},
		{"ignores signals", "trap '' INT TERM HUP; while :; do sleep 1; done", short, exitTimeout, ""},
		{"kills itself", "kill -9 $$", nil, exitAgent, "kill"},
		{"leaves a child", "sleep 1000 & agent", nil, 0, ""},
		{"leaves a child and nothing else", "sleep 1000 & exit 0", nil, exitAgent, ""},
		{"leaves a daemon", "setsid sleep 20 >/dev/null 2>&1 & agent", nil, 0, ""},
		{"closes its streams", "exec >&- 2>&-; sleep 0", nil, exitAgent, ""},
		{"makes its run directory useless", `rm -rf "$UWF_RUN_DIR"/*; echo x > "$UWF_RUN_DIR/run.json"; exit 1`, nil, exitAgent, ""},
		{"steps the thread itself", `uwf thread step "$1" >/dev/null 2>&1; agent`, nil, 0, ""},
	}
}

// liars plays them all, then again in another order, as often as time allows.
func liars(ctx context.Context, t *trial) error {
	var slowest time.Duration
	for t.rounds == 0 || t.time(ctx) {
		s, err := t.stage(ctx, nil)
		if err != nil {
			return err
		}
		all := lies()
		t.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for _, l := range all {
			began := t.env.Now()
			if err := s.lied(ctx, l); err != nil {
				return fmt.Errorf("an agent that %s: %w", l.name, err)
			}
			slowest = max(slowest, t.env.Now().Sub(began))
			t.rounds++
		}
		if err := t.away(s.world); err != nil {
			return err
		}
	}
	t.note("%d kinds of lies; the slowest took %s, its check included", len(lies()), slowest.Round(time.Millisecond))
	return nil
}

// lied plays one lie on a fresh thread and holds that it ended as it must, that
// the thread stayed where it was, and that it goes on.
func (s *stage) lied(ctx context.Context, l lie) error {
	id, err := s.started(ctx)
	if err != nil {
		return err
	}
	s.promise.add(id, "")
	s.subjectThread = id
	if err := s.stepAgain(ctx, &s.promise, id); err != nil {
		return err
	}
	before := s.promise.last(id)
	script := s.path("liar.sh")
	text := "unset " + ledgerVariable + "\n" + // what liars throw away is not finished
		fmt.Sprintf("HEAD=%s OTHER=%s\nagent() { %s \"$@\"; }\nset -- \"$@\"\n", before, s.promise.last(s.base), s.agent)
	// The kit's arguments are the script's; a shell function needs them by hand.
	text += strings.ReplaceAll(l.script, "agent", `agent "$@"`) + "\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		return err
	}
	e, err := s.uwf(ctx, append([]string{"thread", "step", id, "--agent", "sh " + script}, l.flags...)...)
	if err != nil {
		return err
	}
	if e.Code != l.code || !strings.Contains(e.Stderr, l.says) {
		return fmt.Errorf("should exit %d and say %q: %s", l.code, l.says, e)
	}
	if e.Memory > 64<<20 {
		return fmt.Errorf("needs %d MB: %s", e.Memory>>20, e)
	}
	s.promise.heard(e.Stdout)
	if l.code != 0 {
		var shown struct{ Head string }
		if err := s.must(ctx, &shown, "thread", "show", id, "--format", "json"); err != nil {
			return err
		}
		if shown.Head != before {
			return fmt.Errorf("the head moved: %s", e)
		}
	}
	return s.check(ctx)
}
