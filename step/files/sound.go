package files

import (
	"context"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files/gitobject"
	"github.com/united-workforce/uwf/util/env"
)

// DamagedError means that what is kept under a name is something else.
type DamagedError struct {
	Object string // its name: the hash of its content
	Path   string // in the work tree; "": all of it
}

func (e *DamagedError) Error() string {
	what := "what is kept of the files"
	if e.Path != "" {
		what = "what is kept of " + e.Path
	}
	return fmt.Sprintf("%s was changed: object %s has another hash", what, e.Object)
}

// sound returns an error if an object in which two trees differ does not match its name. The
// objects of a repository have a second name in ours, so that whoever may write there, such as
// a command that is confined to the work tree, can change them in place, and git does not look
// at the hash of a file or directory that it reads. "" is a tree without files. Error:
// [*DamagedError].
func (g git) sound(ctx context.Context, e env.Env, store string, a, b protocol.Tree) (err error) {
	if a == b {
		return nil
	}
	if a, b, err = g.known(ctx, a, b); err != nil {
		return err
	}
	out, err := g.run(ctx, nil, "diff-tree", "-r", "-t", "--raw", "--no-renames", "--no-abbrev", "-z", sumOf(a), sumOf(b))
	if err != nil {
		return err
	}
	r, err := newReader(e, store)
	if err != nil {
		return err
	}
	objects := &Objects{env: e, readers: []*reader{r}}
	defer func() { _ = objects.Close() }()
	seen := map[string]bool{}
	check := func(sum, path string) error {
		if seen[sum] || strings.Trim(sum, "0") == "" {
			return nil
		}
		seen[sum] = true
		kind, content, err := r.get(sum)
		if err != nil || kind == "" { // git reports a missing object when it needs it
			return err
		}
		if gitobject.Hash(a.Function(), kind, string(content)) != sum {
			return &DamagedError{Object: sum, Path: path}
		}
		return ctx.Err()
	}
	for _, root := range []protocol.Tree{a, b} {
		if err := check(sumOf(root), ""); err != nil {
			return err
		}
	}
	raw := fields(out)
	for i := 0; i+1 < len(raw); i += 2 { // ":<mode> <mode> <hash> <hash> <status>", path
		meta := strings.Fields(strings.TrimPrefix(raw[i], ":"))
		if len(meta) != 5 {
			return fmt.Errorf("git diff-tree prints %q", raw[i])
		}
		for side, mode := range meta[:2] {
			if mode == Gitlink {
				continue // a submodule is only named
			}
			if err := check(meta[2+side], raw[i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}
