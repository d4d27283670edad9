//go:build instruments

package attacks

import "strings"

// nameRows create names that git, agents or uwf obey, next to each other in one repository.
func nameRows() []row {
	undone := func(name, touches, script string) row {
		if touches != "" {
			touches = "home/src/repo/" + touches
		}
		return row{name: name, script: script, touches: touches, landlock: "undone"}
	}
	return []row{
		undone("a-hook", ".git/hooks/post-checkout", `hook .git/hooks/post-checkout`),
		undone("a-hook-before-commits", ".git/hooks/pre-commit", `hook .git/hooks/pre-commit`),
		undone("a-hook-before-pushes", ".git/hooks/pre-push", `hook .git/hooks/pre-push`),
		undone("a-hook-that-was-there", ".git/hooks/mine", `echo evil >> .git/hooks/mine`),
		undone("attributes-in-info", ".git/info/attributes", `echo '* filter=x' > .git/info/attributes`),
		undone("settings-of-a-submodule", ".git/modules/sub/config", `git config -f .git/modules/sub/config core.fsmonitor "$F"`),
		undone("a-hook-of-a-submodule", ".git/modules/sub/hooks", `mkdir -p .git/modules/sub/hooks && hook .git/modules/sub/hooks/post-commit`),
		{name: "the-git-file-of-a-submodule", touches: "home/src/repo/sub/.git", landlock: "undone", script: `mkdir e && cp -r .git/modules/sub e/evil && git config -f e/evil/config core.fsmonitor "$F" && echo gitdir: ../e/evil > sub/.git`},
		undone("the-directory-of-another-worktree", ".git/worktrees/linked/commondir", `cp -r .git evilcommon && git config -f evilcommon/config core.fsmonitor "$F" && echo $W/evilcommon > .git/worktrees/linked/commondir`),
		undone("where-another-worktree-is", ".git/worktrees/linked/gitdir", `echo $W/docs/.git > .git/worktrees/linked/gitdir`),
		undone("settings-of-another-worktree", ".git/worktrees/linked/config.worktree", `git config -f .git/worktrees/linked/config.worktree core.fsmonitor "$F"`),
		undone("settings-of-a-repository-inside", "inner/.git/config", `git -C inner config core.fsmonitor "$F"`),
		undone("a-hook-of-a-repository-inside", "inner/.git/hooks", `mkdir -p inner/.git/hooks && hook inner/.git/hooks/post-commit`),
		undone("a-new-repository", "", `mkdir -p docs/new && cd docs/new && git init -q && git commit -q --allow-empty -m x && git config core.fsmonitor "$F"`),
		undone("a-new-repository-deep-down", "", `mkdir -p a/b/c/d && cd a/b/c/d && git init -q && git config core.fsmonitor "$F"`),
		{name: "a-repository-in-a-closed-directory", after: `chmod 755 closed; cd closed/r && git status`, landlock: "undone", script: `mkdir -p closed/r && (cd closed/r && git init -q && git config core.fsmonitor "$F") && chmod 111 closed`},
		undone("a-bare-repository", "", `git init -q --bare bare.d && git -C bare.d config core.fsmonitor "$F" && git -C bare.d config core.bare false && git -C bare.d config core.worktree .`),
		{name: "a-directory-that-becomes-bare", after: `cd src && git status`, landlock: "undone", script: `cd src && mkdir objects refs && echo ref: refs/heads/x > HEAD && printf '[core]\n\trepositoryformatversion = 0\n\tfsmonitor = %s\n\tbare = false\n\tworktree = .\n' "$F" > config`},
		undone("a-link-as-a-repository", "", `mkdir store && git init -q store && git -C store config core.fsmonitor "$F" && mkdir linkrepo && ln -s ../store/.git linkrepo/.git`),
		undone("a-git-file", "", `mkdir filerepo && git init -q --separate-git-dir=$W/sep filerepo && git config -f sep/config core.fsmonitor "$F"`),
		{name: "a-hook-where-one-pushes-to", script: `git init -q --bare pushed.git && hook pushed.git/hooks/pre-receive`, after: `git push ./pushed.git HEAD:refs/heads/x`, landlock: "undone"},
		undone("other-settings-of-claude", ".claude/settings.json", `echo '{"hooks":{}}' > .claude/settings.json`),
		undone("new-settings-of-claude", ".claude", `echo '{"hooks":{}}' > .claude/settings.local.json`),
		undone("servers-of-agents", ".mcp.json", `echo '{"mcpServers":{}}' > .mcp.json`),
		undone("a-plugin-of-opencode", "opencode.json", `echo '{"plugin":["x"]}' > opencode.json`),
		undone("hooks-of-cursor", ".cursor/hooks.json", `mkdir -p .cursor && echo '{"x":1}' > .cursor/hooks.json`),
		undone("settings-of-gemini-deep-down", "deep/.gemini/settings.json", `mkdir -p deep/.gemini && echo '{"tools":{}}' > deep/.gemini/settings.json`),
		undone("settings-in-a-read-only-directory", "locked/.claude", `mkdir -p locked/.claude && echo '{}' > locked/.claude/settings.json && chmod 500 locked/.claude locked`),
		undone("hooks-of-copilot", ".github/hooks/x.json", `mkdir -p .github/hooks && echo '{"x":1}' > .github/hooks/x.json`),
		undone("servers-of-the-editor", ".vscode/mcp.json", `mkdir -p .vscode && echo '{"x":1}' > .vscode/mcp.json`),
		undone("another-system-s-settings", ".hg/hgrc", `mkdir -p .hg && echo x > .hg/hgrc`),
		undone("a-workflow-that-was-there", ".workflow/x.yaml", `echo evil > .workflow/x.yaml`),
		undone("a-new-workflow", ".workflow", `echo evil > .workflow/y.yaml`),
		undone("workflows-in-another-directory", "deep/.workflow/z.yaml", `mkdir -p deep/.workflow && echo evil > deep/.workflow/z.yaml`),
		undone("a-home-of-uwf", ".uwf/config.yaml", `mkdir .uwf && echo 'commands: { sandbox: { mode: none } }' > .uwf/config.yaml`),
		{name: "a-program-called-git", script: `mkdir -p .venv/bin && hook .venv/bin/git && hook .venv/bin/sh && hook .venv/bin/uwf-builtin && hook ./git`,
			touches: "home/src/repo/.venv home/src/repo/git", after: `echo true > got/attack.sh; PATH=$PWD/.venv/bin:.:$PATH; $DIR/../bin/uwf inbox; $DIR/../bin/uwf run $DIR/run/attack.yaml -p x`,
			landlock: "open: changed", box: "open: changed"},
		{name: "a-makefile", script: `printf 'all:\n\techo evil\n' > Makefile`, touches: "home/src/repo/Makefile", landlock: "open: changed", box: "open: changed"},
		{name: "a-link-out", script: `ln -s $OUT outlink`, touches: "home/src/repo/outlink", landlock: "open: changed", box: "open: changed"},
		{name: "a-link-to-its-caches", script: `P=${XDG_CACHE_HOME:-$H/.cache/uwf/x}; mkdir -p $P/y && (cd $P/y && git init -q && git config core.fsmonitor "$F") && ln -s $P/y cachelink`, touches: "home/src/repo/cachelink",
			after: `cd cachelink 2>/dev/null && git status`, landlock: "undone"},
	}
}

// settingRows add repository settings that start programs, after which the user works.
func settingRows() []row {
	set := func(name, keys string, after string) row {
		script := ""
		for _, key := range strings.Split(keys, "\n") {
			script += "git config -f .git/config " + key + "\n"
		}
		return row{name: name, script: script, after: after, landlock: "undone"}
	}
	return []row{
		set("fsmonitor", `core.fsmonitor "$F"`, ""),
		set("hookspath", `core.hooksPath $W/evilhooks`+"\n"+`x.y z; mkdir -p evilhooks && hook evilhooks/post-commit`, ""),
		set("a-filter", `filter.x.clean "$F"`+"\n"+`filter.x.smudge "$F"; printf '*.z filter=x\n' > .gitattributes; echo x > a.z`, ""),
		set("a-program-for-ssh", `core.sshCommand "$F"`, `unset GIT_SSH_COMMAND; git fetch ssh://localhost/x`),
		set("an-editor", `core.editor "$F"`, `unset GIT_EDITOR; git commit --allow-empty`),
		set("an-editor-of-rebases", `sequence.editor "$F"`, `git rebase -i HEAD~1; git rebase --abort`),
		set("a-program-for-diff", `diff.external "$F"`, `git diff HEAD~1`),
		set("a-program-that-asks", `core.askPass $W/evilask; hook evilask`, "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"),
		set("a-text-conversion", `diff.t.textconv "$F"; echo 'docs/* diff=t' >> .gitattributes`, `git log -p -1 -- docs; git diff HEAD~3 -- docs`),
		set("a-merge-driver", `merge.m.driver "$F"; echo 'Makefile merge=m' >> .gitattributes`,
			`git checkout -qb m1; echo 1 > Makefile; git commit -qam 1; git checkout -qb m2 HEAD~1; echo 2 > Makefile; git commit -qam 2; git merge m1; git merge --abort; git checkout -q main`),
		set("a-program-that-signs", `gpg.program $W/evilgpg; hook evilgpg`, `git commit -q --allow-empty -S -m x`),
		set("a-store-of-passwords", `credential.helper "!$F"`, "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"),
		set("an-alias", `alias.st "!$F"`, `git st`),
		set("an-update-of-a-submodule", `submodule.sub.update "!$F"`, `cd sub; git checkout -q HEAD~0; git commit -q --allow-empty -m y; cd ..; git submodule update`),
		set("a-program-that-receives", `remote.origin.receivepack "$F"`+"\n"+`remote.origin.uploadpack "$F"`, ""),
		set("a-protocol", `protocol.ext.allow always`+"\n"+`remote.evil.url "ext::$F"`, `git fetch evil`),
		set("an-address-instead", `protocol.ext.allow always`+"\n"+`url."ext::$F ".insteadOf other:`, `git fetch other:x`),
		set("an-include", `include.path $W/evilinclude; git config -f evilinclude alias.included "!$F"`, `git included`),
		set("a-conditional-include", `"includeIf.gitdir:**.path" ../evilcond; git config -f evilcond alias.conditional "!$F"`, `git conditional`),
		set("a-program-that-trails", `trailer.x.command "$F"`+"\n"+`trailer.x.key X`, `git commit --allow-empty -m x --trailer X=1`),
		set("a-difftool", `diff.tool x`+"\n"+`difftool.x.cmd "$F"`, `git difftool -y --tool=x HEAD~1`),
		{name: "a-setting-that-starts-nothing", script: `git config pull.rebase false`, touches: "home/src/repo/.git/config", landlock: "undone"},
		set("a-remote-helper", `remote.evil2.vcs "sh"`+"\n"+`core.gitProxy $W/evilproxy; hook evilproxy`, `git fetch git://localhost/x`),
	}
}

// aloneRows destroy or replace so much that no other attack can run with them.
func aloneRows() []row {
	config := func(name, script string) row {
		return row{name: name, script: script, touches: "home/src/repo/.git", landlock: "undone"}
	}
	const evil = `git config -f c2 core.fsmonitor "$F"; `
	return []row{
		config("settings-by-appending", `printf '[core]\n\tfsmonitor = %s\n' "$F" >> .git/config; grep -q fire .git/config`),
		config("settings-on-one-line", `printf '[core] fsmonitor = %s\n' "$F" >> .git/config; grep -q fire .git/config`),
		config("settings-by-renaming", `cp .git/config c2; `+evil+`mv -f c2 .git/config`),
		config("settings-as-a-link", `cp .git/config c2; `+evil+`rm .git/config && ln -s ../c2 .git/config`),
		config("settings-as-a-pipe", `rm .git/config && mkfifo .git/config`),
		config("settings-as-a-directory", `rm .git/config && mkdir .git/config && touch .git/config/x`),
		config("settings-removed", `rm .git/config`),
		config("large-settings", `head -c 3000000 /dev/zero > .git/config; [ $(stat -L -c %s .git/config) = 3000000 ]`),
		config("exchanged-settings", `cp .git/config c2; `+evil+`$A exchange c2 .git/config`),
		config("a-second-name-for-settings", `ln .git/config c3 && git config -f c3 core.fsmonitor "$F"`),
		{name: "settings-of-a-worktree", script: `git config extensions.worktreeConfig true; git config -f .git/config.worktree core.fsmonitor "$F"`,
			touches: "home/src/repo/.git", landlock: "undone"},
		config("hooks-as-a-link", `mkdir evilhooks; hook evilhooks/post-checkout; mv .git/hooks h2 && ln -s ../evilhooks .git/hooks`),
		config("hooks-removed", `rm -r .git/hooks`),
		config("info-removed", `rm -r .git/info`),
		config("another-common-directory", `cp -r .git evilcommon; git config -f evilcommon/config core.fsmonitor "$F"; echo $W/evilcommon > .git/commondir`),
		{name: "objects-of-elsewhere", script: `echo $H/src/other/.git/objects > .git/objects/info/alternates`, touches: "home/src/repo/.git/objects/info", landlock: "undone", told: "alternates"},
		{name: "the-repository-moved", script: `mv .git .git2`, touches: "home/src/repo/.git", landlock: "open: changed", told: ".git"},
		{name: "the-repository-removed", script: `rm -rf .git/* .git; [ ! -e .git/HEAD ]`, touches: "home/src/repo/.git", landlock: "open: changed", box: "open: changed", told: ".git"},
		{name: "the-repository-exchanged", script: `cp -r .git n; git config -f n/config core.fsmonitor "$F"; $A exchange n .git`, touches: "home/src/repo/.git", landlock: "undone", told: ".git"},
		{name: "a-git-file-instead", script: `cp -r .git n; git config -f n/config core.fsmonitor "$F"; mv .git g && echo gitdir: n > .git`, touches: "home/src/repo/.git", landlock: "open: changed", told: "n/config"},
		{name: "the-repository-closed", touches: "home/src/repo/.git/config home/src/repo/.git/hooks", leaves: "home/src/repo/.git", landlock: "undone",
			script: `printf '[core]\n\tfsmonitor = %s\n' "$F" >> .git/config; hook .git/hooks/post-commit; chmod 0 .git`},
		{name: "the-workspace-moved", script: `cd .. && mv repo repo9`, touches: "home/src/repo home/src/repo9", landlock: "held"},
		{name: "a-submodule-replaced", script: `mv sub sub.old && git init -q sub && git -C sub config core.fsmonitor "$F"`, landlock: "undone"},
		{name: "a-rebase-with-a-program", script: `git commit -q --allow-empty -m 1; git commit -q --allow-empty -m 2; GIT_SEQUENCE_EDITOR='sed -i 1ibreak' git rebase -q -i HEAD~1; echo "exec $F" >> .git/rebase-merge/git-rebase-todo`,
			leaves: "home/src/repo/.git/rebase-merge home/src/repo/.git/REBASE_HEAD", landlock: "undone"},
		{name: "a-rebase-from-nothing", script: `mkdir -p .git/rebase-merge && cd .git/rebase-merge && echo "exec $F" > git-rebase-todo && echo refs/heads/main > head-name && git rev-parse HEAD > onto && cp onto orig-head && : > interactive && : > done && echo 1 > msgnum && echo 1 > end`,
			leaves: "home/src/repo/.git/rebase-merge", landlock: "undone"},
		{name: "a-flood-and-a-repository", script: `mkdir flood && cd flood && seq 6000 | xargs mkdir && cd .. && mkdir -p zz/deep && git init -q zz/deep && git -C zz/deep config core.fsmonitor "$F"`,
			after: `cd zz/deep && git status`, landlock: "undone"},
		{name: "a-blind-index", script: `git update-index --skip-worktree Makefile && echo evil >> Makefile`, touches: "home/src/repo/Makefile", landlock: "open: changed", box: "open: changed", told: "Makefile"},
		{name: "another-commit-instead", script: `git replace -f HEAD HEAD~1`, touches: "home/src/repo/.git/refs/replace", landlock: "open: changed", box: "open: changed", told: "refs/replace"},
		{name: "origin-led-to-a-repository-inside", script: `git init -q --bare evil.git && hook evil.git/hooks/pre-receive && git remote set-url origin $W/evil.git`, touches: "home/src/repo/.git/config", landlock: "undone"},
		{name: "origin-behind-a-link", script: `git init -q --bare evil.git && hook evil.git/hooks/pre-receive && git remote set-url origin /var/run/..$W/evil.git`, touches: "home/src/repo/.git/config", landlock: "undone"},
		{name: "origin-deep-in-the-caches", script: `P=${XDG_CACHE_HOME:-$TMPDIR}/aa; mkdir -p $P && cd $P && seq 4000 | xargs mkdir && mkdir -p 3999/x && git init -q --bare 3999/x/evil.git && hook 3999/x/evil.git/hooks/pre-receive && cd $W && git remote set-url origin /var/run/..$P/3999/x/evil.git`,
			touches: "home/src/repo/.git/config", landlock: "undone"},
		{name: "origin-elsewhere", script: `git remote set-url origin https://evil.example/x.git`, touches: "home/src/repo/.git/config", landlock: "open: changed", box: "open: changed", told: "evil.example"},
		{name: "a-new-remote", script: `git remote add evil https://evil.example/x.git`, touches: "home/src/repo/.git/config", landlock: "open: changed", box: "open: changed", told: "evil.example"},
	}
}
