package offlimits

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
)

// unseen reports whether nobody has looked before where a path lies.
func (k *keeper) unseen(name string) bool { return k.sawAll != nil && !k.sawAll(name) }

// older reports whether a file may have been there before, where nobody has looked.
func (k *keeper) older(name string, info fs.FileInfo) bool {
	return !info.IsDir() && k.unseen(name) && (k.place.Now.IsZero() || changed(info).Before(k.place.Now.Add(-clockSlack)))
}

// fresh judges what was not there before. A repository that a command has made
// may stay, as far as nothing in it starts a program.
func (k *keeper) fresh(name string, s scope) error {
	info, err := k.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	k.open(name, info)
	base := strings.ToLower(path.Base(name))
	switch {
	case k.older(name, info):
		return nil
	case s == plans && info.IsDir():
		return k.freshDir(name, &node{Scope: s})
	case s == plans:
		return k.fixPlan(name, info, nil)
	case s == repository && info.IsDir() && !isGit(plain(base)) && k.names[name] == repository:
		return k.freshBare(name)
	case info.IsDir() && k.unseen(name):
		return k.freshDir(name, &node{Scope: s})
	case info.IsDir() && (s == agentFiles || s == repository || s == repositories || s == settings && (base == "hooks" || base == "info" || base == "branches")):
		return k.freshDir(name, &node{Scope: s})
	case s == repository && k.leads(name, info, s):
		return nil
	case info.Mode().IsRegular() && s == settings:
		return k.freshFile(name, base, info)
	case info.Mode().IsRegular() && (s == everything || s == agentFiles):
		if text, err := careful.ReadFileIn(k.root, name, maxFileBytes); err == nil && sameSettings(nil, text) {
			return nil
		}
	}
	return k.remove(name)
}

// freshFile judges a new file of a repository.
func (k *keeper) freshFile(name, base string, info fs.FileInfo) error {
	dir := path.Base(path.Dir(name))
	text, err := careful.ReadFileIn(k.root, name, maxFileBytes)
	if err != nil {
		return k.remove(name)
	}
	switch {
	case strings.HasSuffix(base, ".sample"), dir == "info" && base != "attributes" && base != "grafts" && base != "exclude":
		return nil
	case dir == "info" && base == "exclude" && !excludes(text): // as git init makes it
		return nil
	case k.known[fingerprint(name, text)] && !pointsAway(text): // it has moved with its repository
		k.renew(name, info, settings, text, info.Mode().Perm())
		return nil
	case isConfig(name):
		if kept, ok := tamed(k.formerly(name, text), text, k.ground(name)); ok {
			return k.rewrite(name, info, settings, text, kept, info.Mode().Perm())
		}
	case base == "commondir" && strings.TrimSpace(string(text)) == "../..",
		base == "gitdir" && path.Base(path.Dir(path.Dir(name))) == "worktrees":
		return nil
	}
	return k.remove(name)
}

// formerly is a config of those settings in text that a config of that name had before: one that
// has moved and changed keeps what its user had set.
func (k *keeper) formerly(name string, text []byte) []byte {
	still := map[setting]bool{}
	after, _ := parseConfig(text)
	for _, l := range after {
		still[l.setting] = true
	}
	var all []byte
	for known := range k.known {
		before, ok := strings.CutPrefix(known, fingerprint(name, nil))
		if !ok || pointsAway([]byte(before)) {
			continue
		}
		lines, _ := parseConfig([]byte(before))
		head := ""
		for _, l := range lines {
			if l.header() {
				head = l.text
			} else if l.key != "" && still[l.setting] {
				all = append(append(append(all, head...), l.text...), '\n')
			}
		}
	}
	return all
}

// excludes reports whether a list of what git does not show names anything.
func excludes(text []byte) bool {
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return true
		}
	}
	return false
}

// pointsAway reports whether a config names others, relative to where it lies.
func pointsAway(text []byte) bool {
	return slices.ContainsFunc(readSettings(text), func(s setting) bool {
		return s.key == "hookspath" || s.section == "include" || s.section == "includeif"
	})
}

// freshBare judges a new repository without a work tree. Somebody's directory may
// have become one by what was added to it, so that only what git obeys is taken
// out; and if the config cannot be read it is made none.
func (k *keeper) freshBare(name string) error {
	var errs []error
	for _, entry := range []string{"config", "config.worktree", "commondir"} {
		full := path.Join(name, entry)
		info, err := k.root.Lstat(full)
		if err != nil || k.older(full, info) {
			continue
		}
		text, err := careful.ReadFileIn(k.root, full, maxFileBytes)
		kept, ok := tamed(k.formerly(full, text), text, k.ground(full))
		switch {
		case err == nil && k.known[fingerprint(full, text)] && !pointsAway(text):
			k.renew(full, info, settings, text, info.Mode().Perm())
		case entry == "commondir" && strings.TrimSpace(string(text)) == "../.." && k.names[path.Dir(path.Dir(name))] == repository:
		case err == nil && ok && entry != "commondir":
			errs = append(errs, k.rewrite(full, info, settings, text, kept, info.Mode().Perm()))
		default:
			return k.remove(path.Join(name, "HEAD"))
		}
	}
	inHooks := path.Join(name, "hooks")
	if info, err := k.root.Lstat(inHooks); err == nil && !info.IsDir() && !k.older(inHooks, info) {
		errs = append(errs, k.remove(inHooks))
	} else if err == nil && info.IsDir() {
		k.open(inHooks, info)
		errs = append(errs, list(k.root, inHooks, func(entry string) error {
			full := path.Join(inHooks, entry)
			text, err := careful.ReadFileIn(k.root, full, maxFileBytes)
			info, gone := k.root.Lstat(full)
			if gone == nil && k.older(full, info) || !isHook(entry) {
				return nil
			}
			if err == nil && gone == nil && k.known[fingerprint(full, text)] {
				k.renew(full, info, settings, text, info.Mode().Perm())
				return nil
			}
			return k.remove(full)
		}))
	}
	for _, entry := range []string{"modules", "worktrees"} {
		full := path.Join(name, entry)
		if info, err := k.root.Lstat(full); err == nil && info.IsDir() {
			k.open(full, info)
			errs = append(errs, k.freshDir(full, &node{Scope: repositories}))
		}
	}
	return errors.Join(errs...)
}

// leads reports whether a file .git leads to a repository in the workspace that is
// watched as well, such as that of a submodule.
func (k *keeper) leads(name string, info fs.FileInfo, s scope) bool {
	if s != repository || !isGit(plain(path.Base(name))) || !info.Mode().IsRegular() {
		return false
	}
	text, err := careful.ReadFileIn(k.root, name, 8<<10)
	to, ok := strings.CutPrefix(strings.TrimRight(string(text), "\r\n"), "gitdir: ")
	if err != nil || !ok {
		return false
	}
	if filepath.IsAbs(to) {
		if to, err = filepath.Rel(k.dir, to); err != nil {
			return false
		}
	} else {
		to = filepath.Join(filepath.FromSlash(path.Dir(name)), to)
	}
	to = filepath.ToSlash(to)
	if !filepath.IsLocal(to) || !isPlainDir(k.root, to) || !isRepository(k.root, to) {
		return false
	}
	for at := to; at != "."; at = path.Dir(at) {
		if k.names[at] == repository {
			rest := strings.TrimPrefix(to, at)
			return rest == "" || strings.HasPrefix(rest, "/modules/") || strings.HasPrefix(rest, "/worktrees/") && strings.Count(rest, "/") == 2
		}
	}
	return false
}

func (k *keeper) freshDir(name string, n *node) error {
	var errs []error
	err := list(k.root, name, func(entry string) error {
		if inner, ok := n.inner(k.root, name, entry); ok {
			errs = append(errs, k.fresh(path.Join(name, entry), inner))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}
