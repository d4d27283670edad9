package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// liars plays all lies, then again in another order while there is time.
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
			if t.over(ctx) && t.match == "" || !strings.Contains(l.name, t.match) {
				continue
			}
			began := t.env.Now()
			if err := s.lied(ctx, l, t.flood()); err != nil {
				return fmt.Errorf("an agent that %s: %w", l.name, err)
			}
			slowest = max(slowest, t.env.Now().Sub(began))
			t.rounds++
		}
		if err := removeAll(s.dir); err != nil {
			return err
		}
	}
	t.note("%d kinds of lies; a flood has %d MB; the slowest took %s, its check included", len(lies()), t.flood()>>20, slowest.Round(time.Millisecond))
	return nil
}

// flood returns the size of excessive output: a gigabyte if there is time.
func (t *trial) flood() int {
	if t.short() {
		return 50 << 20
	}
	return 1 << 30
}

// lied plays one lie on a fresh thread and checks that it ended as it must, that the thread did not move,
// that no process is left, and that the thread can continue.
func (s *stage) lied(ctx context.Context, l lie, flood int) error {
	before, err := s.victim(ctx, l)
	if err != nil {
		return err
	}
	script, err := s.script(ctx, l, before, flood)
	if err != nil {
		return err
	}
	restore, err := s.keep(ctx, l, before)
	if err != nil {
		return err
	}
	e, err := s.uwf(ctx, append([]string{"thread", "step", s.subjectThread, "--agent", "sh " + script}, l.flags...)...)
	if err != nil {
		return err
	}
	if err := s.caught(l, e); err != nil {
		return err
	}
	if err := restore(); err != nil {
		return err
	}
	s.promise.heard(e.Stdout)
	if l.code != 0 && l.code != exitStopped {
		shown, err := s.show(ctx, s.subjectThread)
		if err != nil {
			return err
		}
		if shown.Head != before {
			return fmt.Errorf("the head moved: %s", e)
		}
	}
	return s.check(ctx)
}

// victim creates a fresh thread and returns its head.
func (s *stage) victim(ctx context.Context, l lie) (string, error) {
	id, err := s.begun(ctx)
	if err != nil {
		return "", err
	}
	for i := 0; i < 2 && !l.first; i++ {
		if err := s.stepAgain(ctx, &s.promise, id); err != nil {
			return "", err
		}
	}
	shown, err := s.show(ctx, id)
	return shown.Head, err
}

// caught checks that a lie ended as it must, and that no process is left.
func (s *stage) caught(l lie, e ended) error {
	if e.Code != l.code && (l.or == 0 || e.Code != l.or) || !strings.Contains(e.Stderr, l.says) {
		return fmt.Errorf("should exit %d and say %q: %s", l.code, l.says, e)
	}
	if e.Memory > 64<<20 {
		return fmt.Errorf("needs %d MB: %s", e.Memory>>20, e)
	}
	left, err := s.endLeft()
	if err != nil {
		return err
	}
	if len(left) > 0 && !l.escapes {
		return fmt.Errorf("%d processes are left: %s", len(left), e)
	}
	return nil
}

func (s *stage) script(ctx context.Context, l lie, before string, flood int) (string, error) {
	cousin := ""
	if strings.Contains(l.script, "$COUSIN") {
		var err error
		if cousin, err = s.cousin(ctx); err != nil {
			return "", err
		}
	}
	path := s.path("liar.sh")
	text := "unset " + ledgerVariable + "\n" + // a liar's discarded work does not count as finished
		fmt.Sprintf("HEAD=%s OTHER=%s COUSIN=%s FLOOD=%d CAS=$OCAS_HOME AGENT=%s\n",
			before, s.promise.heads(s.base)[0], cousin, flood, strings.TrimSuffix(s.agent, " "+agentPart)) +
		fmt.Sprintf("uwf() { %s \"$@\"; }\n", filepath.Join(s.bin, "uwf"))
	// A shell function does not see the script's arguments.
	text += "THREAD=$1 ROLE=$2 FLAG=$3 REF=$4\nagent() { " + s.agent + ` "$THREAD" "$ROLE" "$FLAG" "$REF"; }` + "\n"
	return path, os.WriteFile(path, []byte(text+l.script+"\n"), 0o755)
}

// cousin makes a step at the same distance from the start as the step that the lie has to make, but after
// another one.
func (s *stage) cousin(ctx context.Context) (string, error) {
	var fork struct{ Thread string }
	if err := s.must(ctx, &fork, "thread", "fork", s.promise.heads(s.subjectThread)[0], "--format", "json"); err != nil {
		return "", err
	}
	s.promise.add(fork.Thread, "")
	for range 2 {
		if err := s.stepAgain(ctx, &s.promise, fork.Thread); err != nil {
			return "", err
		}
	}
	return s.promise.last(fork.Thread), nil
}

// keep saves what a lie breaks; restore restores it.
func (s *stage) keep(ctx context.Context, l lie, before string) (restore func() error, err error) {
	switch l.breaks {
	case "":
		return func() error { return nil }, nil
	case "$HEAD":
		path := s.path("head.uwfb")
		return func() error { return s.must(ctx, nil, "cas", "import", path) }, s.must(ctx, nil, "cas", "export", before, "-o", path)
	}
	pattern, whole := filepath.Join(s.home, l.breaks), map[string][]byte{}
	paths, err := filepath.Glob(pattern)
	for _, path := range paths {
		if err == nil {
			whole[path], err = os.ReadFile(path)
		}
	}
	return func() error {
		now, err := filepath.Glob(pattern)
		for _, path := range now {
			err = errors.Join(err, os.Remove(path))
		}
		for path, data := range whole {
			err = errors.Join(err, os.WriteFile(path, data, 0o600))
		}
		return err
	}, err
}
