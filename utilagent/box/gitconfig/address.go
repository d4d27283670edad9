package gitconfig

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

const maxLinks = 40 // as Linux follows

var scpForm = lazyregexp.New(`^([\w.+-]+@)?([\w.-]+|\[[0-9A-Fa-f:.]+\]):[^:]*$`)

// address reports whether git reaches a remote at a URL without a program of the command's choice,
// and not in a directory that the command could write: git push runs the hooks there.
func (m Merging) address(value string) bool {
	if value == "" || value[0] == '-' || strings.Contains(value, "::") {
		return false
	}
	if _, rest, ok := strings.Cut(value, "://"); ok {
		u, err := url.Parse(value)
		authority, _, _ := strings.Cut(rest, "/")
		switch {
		case err != nil || strings.Contains(authority, "%") || !strings.HasPrefix(value, u.Scheme+":"):
			return false
		case u.Scheme == "file":
			return authority == "" && !strings.Contains(value, "%") && m.elsewhere(strings.TrimPrefix(value, "file://"))
		}
		return slices.Contains([]string{"https", "ssh", "git"}, u.Scheme) && u.Hostname() != "" &&
			u.Hostname()[0] != '-' && !strings.HasPrefix(authority, "-") && !strings.HasPrefix(u.Path, "/-")
	}
	if host, path, ok := strings.Cut(value, ":"); ok && !strings.Contains(host, "/") {
		return scpForm().MatchString(value) && !strings.Contains(value, "@-") && !strings.HasPrefix(path, "-")
	}
	return m.elsewhere(value)
}

// elsewhere reports whether no part of a path lies where the command could write. The path is followed
// part by part, as the kernel does; ".." behind a link is refused.
func (m Merging) elsewhere(path string) bool {
	at, linked, links := string(filepath.Separator), false, 0
	rest := strings.Split(filepath.ToSlash(path), "/")
	if !filepath.IsAbs(path) {
		at = followed(m.Dir)
	}
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if linked {
				return false
			}
			at = filepath.Dir(at)
			continue
		}
		at = filepath.Join(at, part)
		if m.wrote(at) {
			return false
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		if links++; links > maxLinks {
			return false
		}
		linked = true
		if at = filepath.Dir(at); filepath.IsAbs(to) {
			at = string(filepath.Separator)
		}
		rest = append(strings.Split(filepath.ToSlash(to), "/"), rest...)
	}
	return !m.wrote(at)
}

// wrote reports whether the command could write at a path: also in the git directory, wherever that lies.
func (m Merging) wrote(at string) bool {
	dirs := append(slices.Clone(m.Writable), filepath.Dir(m.Config))
	return slices.ContainsFunc(dirs, func(dir string) bool { return below(dir, at) || below(followed(dir), at) })
}

// followed is a directory without links, or the path itself if it is gone.
func followed(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		return real
	}
	return dir
}

func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// shown are addresses without user names and passwords, which may be keys.
func shown(addresses []string) []string {
	all := slices.Clone(addresses)
	for i, address := range all {
		if u, err := url.Parse(address); err == nil && u.User != nil && u.Scheme != "ssh" {
			u.User = nil
			all[i] = u.String()
		}
	}
	return all
}
