package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// release creates the release commit and its tags, one per module and one for the release page. It pushes
// nothing; the last line of its output is the command that does.
//
// Everything is checked before the first tag, because a published tag cannot be revoked.
func (t *tree) release(ctx context.Context, version string, p process) error {
	if semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("%q is not a version such as v0.2.0", version)
	}
	if err := t.clean(ctx, p); err != nil {
		return err
	}
	if err := t.untagged(ctx, version, p); err != nil {
		return err
	}
	if err := t.requireAt(version); err != nil {
		return err
	}
	released, err := loadTree(t.root)
	if err != nil {
		return err
	}
	if err := released.tidy(ctx, true, p); err != nil {
		return err
	}
	if err := released.installCheck(ctx, nil, p); err != nil {
		return fmt.Errorf("%w\nnothing was committed or tagged: git diff shows what was changed", err)
	}
	for _, args := range [][]string{{"add", "--all"}, {"commit", "--quiet", "--allow-empty", "-m", "release " + version}} {
		if _, err := t.git(ctx, p, args...); err != nil {
			return err
		}
	}
	var tags []string
	for _, m := range released.modules {
		ours := strings.HasPrefix(m.dir, "internal/") && !strings.HasPrefix(m.dir, "internal/thirdparty/")
		if ours || strings.HasPrefix(m.dir, "examples/") {
			continue // never installed
		}
		tag := m.dir + "/" + version
		if _, err := t.git(ctx, p, "tag", "-a", tag, "-m", tag); err != nil {
			return err
		}
		tags = append(tags, tag)
	}
	// The release page, the formula and install.sh use the plain version, since a URL has no room for a
	// module's name.
	if _, err := t.git(ctx, p, "tag", "-a", version, "-m", version); err != nil {
		return err
	}
	tags = append(tags, version)
	fmt.Fprintf(p.stdout, "released %s: %d tags. All or nothing, push them together:\n  git push --atomic origin HEAD %s\n",
		version, len(tags), strings.Join(tags, " "))
	return nil
}

// clean rejects a tree with uncommitted changes: the tags would differ from what was tested.
func (t *tree) clean(ctx context.Context, p process) error {
	out, err := t.git(ctx, p, "status", "--porcelain")
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) != "" {
		return errors.New("there are changes that are not committed:\n" + out)
	}
	return nil
}

// untagged rejects a version that was already released.
func (t *tree) untagged(ctx context.Context, version string, p process) error {
	out, err := t.git(ctx, p, "tag", "--list", "*/"+version)
	if err != nil {
		return err
	}
	if out != "" {
		return fmt.Errorf("%s was released already: %s", version, strings.Join(strings.Fields(out), ", "))
	}
	return nil
}

// requireAt makes the modules require each other at a version, and go.work replace it.
func (t *tree) requireAt(version string) error {
	for _, m := range t.modules {
		for _, r := range m.mod.Require {
			if t.module(r.Mod.Path) == nil {
				continue
			}
			if err := m.mod.AddRequire(r.Mod.Path, version); err != nil {
				return err
			}
		}
		text, err := m.mod.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(t.abs(m), "go.mod"), text, 0o644); err != nil {
			return err
		}
	}
	return t.workAt(version)
}

// workAt updates the version in the replace lines of each go.work.
func (t *tree) workAt(version string) error {
	for _, dir := range t.works {
		work, err := t.workspace(dir)
		if err != nil {
			return err
		}
		for _, r := range work.Replace {
			if t.module(r.Old.Path) == nil || r.Old.Version == version {
				continue
			}
			old := r.Old
			if err := work.AddReplace(old.Path, version, r.New.Path, r.New.Version); err != nil {
				return err
			}
			if err := work.DropReplace(old.Path, old.Version); err != nil {
				return err
			}
		}
		work.Cleanup()
		if err := os.WriteFile(t.goWork(dir), modfile.Format(work.Syntax), 0o644); err != nil {
			return err
		}
	}
	return nil
}
