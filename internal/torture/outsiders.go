package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
)

// outsiders tests bundles from an attacker, who prepared them in his own home and then changed bytes that our
// programs would not let him change.
func outsiders() func(context.Context, *trial, *victim) error {
	return some(1,
		attack{"a thread of the future", func(ctx context.Context, t *trial, v *victim) error {
			const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
			id := string(digits[2+t.random.IntN(6)])
			for len(id) < 26 {
				id += string(digits[t.random.IntN(len(digits))])
			}
			return v.imports(ctx, func(b bundle) []byte { return b.patched(b.thread, id) }, false)
		}},
		attack{"a name that is no name", func(ctx context.Context, t *trial, v *victim) error {
			name := pick(t, "a$(touch PWNED)b", "--agent=sh", "a;touch PWNED", "../../x", "a\x1b[2Jb", "a\nb", "`touch PWNED`", "-rf", "a b", "a\u202eb")
			return v.imports(ctx, func(b bundle) []byte { return b.patched(honest, name+strings.Repeat("x", len(honest)-len(name))) }, false)
		}},
		attack{"a bundle that was changed", func(ctx context.Context, t *trial, v *victim) error {
			return v.imports(ctx, func(b bundle) []byte {
				b.data[t.random.IntN(len(b.data))] ^= byte(1 + t.random.IntN(255))
				return b.data
			}, false)
		}},
		attack{"a thread that works where a stranger says, and redactions of what everybody has", func(ctx context.Context, _ *trial, v *victim) error {
			return v.imports(ctx, func(b bundle) []byte { return b.data }, true)
		}},
	)
}

// bundle is an attacker's bundle.
type bundle struct {
	data   []byte
	thread string
}

// patched replaces a text in the manifest by another of the same length and updates the digest.
func (b bundle) patched(old, text string) []byte {
	out := bytes.Replace(b.data, []byte(old), []byte(text), 1)
	end := len(out) - sha256.Size
	digest := sha256.Sum256(out[:end])
	return append(out[:end:end], digest[:]...)
}

// stranger creates a bundle in another home, with the victim's workflow and directory, and everything
// possible redacted.
func (v *victim) stranger(ctx context.Context) (bundle, error) {
	his := *v
	theirs := *v.world
	his.world = &theirs
	his.home = v.path("theirs")
	his.env = append(append([]string{}, v.env...), "UWF_HOME="+his.home)
	var b bundle
	var run struct{ Thread, Head string }
	if err := his.must(ctx, nil, "workflow", "put", v.path(honest+".yaml")); err != nil {
		return b, err
	}
	if err := his.must(ctx, &run, "run", honest, "-p", finish, "--agent", v.agent, "--format", "json"); err != nil {
		return b, err
	}
	b.thread = run.Thread
	walked, err := his.uwf(ctx, "cas", "walk", run.Head, "--format", "text")
	if err != nil {
		return b, err
	}
	redacted := 0
	for _, node := range strings.Fields(string(walked.Stdout)) {
		e, err := his.uwf(ctx, "thread", "redact", run.Thread, "--node", node, "--reason", "by a stranger")
		if err != nil {
			return b, err
		}
		if e.Code == 0 {
			redacted++
		}
	}
	if redacted == 0 {
		return b, fmt.Errorf("nothing could be redacted: %s", walked)
	}
	file := v.path("theirs.uwfb")
	if err := his.must(ctx, nil, "thread", "export", run.Thread, "-o", file); err != nil {
		return b, err
	}
	b.data, err = os.ReadFile(file)
	return b, err
}

// imports imports an attacker's bundle and checks that it is accepted only if it is valid, that @ stays, that
// all names are valid, and that nothing imported runs by itself.
func (v *victim) imports(ctx context.Context, change func(bundle) []byte, fine bool) error {
	if err := v.must(ctx, nil, "thread", "start", honest, "-p", "mine"); err != nil {
		return err
	}
	mine, err := v.newest(ctx)
	if err != nil {
		return err
	}
	b, err := v.stranger(ctx)
	if err != nil {
		return err
	}
	file := v.path("theirs.uwfb")
	if err := os.WriteFile(file, change(b), 0o600); err != nil {
		return err
	}
	e, err := v.silent(ctx, "thread", "import", file)
	if err == nil && (e.Code == 0) != fine {
		err = fmt.Errorf("taken or not: %s", e)
	}
	if err != nil {
		return err
	}
	if now, err := v.newest(ctx); err != nil || now != mine {
		return fmt.Errorf("@ is %s, was %s: %w", now, mine, err)
	}
	var listed []struct{ Name string }
	if err := v.must(ctx, &listed, "workflow", "list", "--format", "json"); err != nil {
		return err
	}
	for _, w := range listed {
		if strings.ContainsAny(w.Name, "$`;/ \x1b\n\u202e") || strings.HasPrefix(w.Name, "-") {
			return fmt.Errorf("a workflow is called %q", w.Name)
		}
	}
	for _, args := range [][]string{{"thread", "step"}, {"thread", "resume", "-p", "x"}, {"thread", "retry", "-p", "x"}, {"thread", "replay"}} {
		e, err := v.silent(ctx, append(append([]string{}, args...), b.thread, "--agent", v.agent)...)
		if err == nil && e.Code == 0 {
			err = fmt.Errorf("a stranger's thread was worked on: %s", e)
		}
		if err != nil {
			return err
		}
	}
	return v.works(ctx, honest) // re-creates nodes that the attacker has redacted
}

// newest returns the thread that @ refers to.
func (v *victim) newest(ctx context.Context) (string, error) {
	shown, err := v.show(ctx, "@")
	return shown.Thread, err
}
