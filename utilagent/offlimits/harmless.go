package offlimits

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// safeKeys are the settings of git that start nothing, whatever their value, nor keep
// anything from whoever looks at `git status` and `git diff`.
func safeKeys() []string {
	return []string{
		"core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode",
		"core.symlinks", "core.autocrlf", "core.eol", "core.safecrlf", "core.whitespace", "core.abbrev", "core.quotepath", "core.longpaths", "core.commentchar",
		"core.sparsecheckout", "core.sparsecheckoutcone", "core.untrackedcache",
		"extensions.objectformat", "extensions.worktreeconfig", "extensions.refstorage", "extensions.partialclone", "extensions.relativeworktrees",
		"user.name", "user.email", "user.useconfigonly", "author.name", "author.email", "committer.name", "committer.email",
		"branch.merge", "branch.rebase", "branch.description", "branch.autosetupmerge", "branch.autosetuprebase", "branch.sort",
		"remote.fetch", "remote.push", "remote.tagopt", "remote.prune", "remote.mirror", "remote.promisor", "remote.partialclonefilter", "remote.skipdefaultupdate",
		"submodule.active", "submodule.recurse", "submodule.branch", "submodule.shallow",
		"init.defaultbranch", "commit.gpgsign", "tag.gpgsign", "tag.sort", "commit.template", "commit.verbose", "commit.cleanup", "commit.status",
		"pull.rebase", "pull.ff", "push.default", "push.autosetupremote", "push.followtags", "push.gpgsign", "fetch.prune", "fetch.prunetags", "fetch.parallel",
		"merge.conflictstyle", "merge.ff", "merge.log", "merge.stat", "merge.renames", "merge.renamelimit", "merge.autostash",
		"rebase.autosquash", "rebase.autostash", "rebase.updaterefs", "rebase.stat", "rerere.enabled", "rerere.autoupdate",
		"diff.algorithm", "diff.renames", "diff.renamelimit", "diff.colormoved", "diff.mnemonicprefix", "diff.noprefix", "diff.context", "diff.submodule",
		"gc.auto", "gc.autodetach", "gc.autopacklimit", "gc.pruneexpire", "gc.reflogexpire", "maintenance.auto", "maintenance.strategy", "pack.threads",
		"index.version", "index.sparse", "index.threads", "feature.manyfiles", "log.date", "log.decorate", "log.follow", "log.abbrevcommit",
		"color.ui", "column.ui", "status.short", "status.branch", "status.submodulesummary", "stash.showpatch",
		"blame.ignorerevsfile", "apply.whitespace", "checkout.defaultremote", "checkout.guess", "lfs.repositoryformatversion",
	}
}

// harmless reports whether a setting starts nothing, neither by itself nor later.
func (s setting) harmless(g ground, remotes map[string]bool) bool {
	name, value := s.section+"."+s.key, unquote(s.value)
	switch {
	case s.section == "advice" || slices.Contains(safeKeys(), name):
		return true
	case name == "branch.remote", name == "branch.pushremote", name == "remote.pushdefault": // may also be an address itself
		return value == "." || remotes[value] || strings.Contains(value, "://") && g.elsewhere(value)
	case name == "core.worktree" && s.sub == "": // of a submodule
		return strings.Contains(filepath.ToSlash(g.git), "/.git/modules/") && !filepath.IsAbs(value) && covered(g.writable, filepath.Join(g.git, value))
	case name == "submodule.url": // only fetched from
		return !strings.Contains(value, "::") && !strings.HasPrefix(value, "-")
	case name == "remote.url", name == "remote.pushurl":
		return g.elsewhere(value)
	case s.section == "filter" && s.sub == "lfs": // git lfs install --local
		return slices.Contains([]string{"clean git-lfs clean -- %f", "smudge git-lfs smudge -- %f", "process git-lfs filter-process", "required true"}, s.key+" "+value)
	}
	return false
}

// elsewhere reports whether an address leads to where no command can write, or to a
// repository that the user has allowed by its name: pushing runs the hooks of a
// repository on this machine.
func (g ground) elsewhere(address string) bool {
	if address == "" || address[0] == '-' || strings.Contains(address, "::") { // "ext::sh -c …" runs a program
		return false
	}
	path := address
	if scheme, _, ok := strings.Cut(address, "://"); ok {
		if scheme != "file" {
			return slices.Contains([]string{"https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps"}, scheme)
		}
		u, err := url.Parse(address)
		if err != nil {
			return false
		}
		path = filepath.FromSlash(u.Path)
	} else if host, _, ok := strings.Cut(address, ":"); ok && !strings.Contains(host, "/") && filepath.VolumeName(address) == "" {
		return true // host:path
	}
	if !filepath.IsAbs(path) {
		if g.top == "" {
			return false
		}
		path = filepath.Join(g.top, path)
	}
	real := followed(filepath.Clean(path))
	return slices.Contains(g.allowed, real) || !covered(g.writable, real) && !covered(g.writable, filepath.Clean(path))
}
