//go:build instruments

package attacks

// groups returns all attacks.
func groups() []group {
	return []group{
		{name: "outside", rows: outsideRows()},
		{name: "reading", rows: readingRows()},
		{name: "machine", rows: machineRows()},
		{name: "kernel", rows: kernelRows()},
		{name: "left", rows: leftRows()},
		{name: "names", rows: nameRows()},
		{name: "settings", rows: settingRows()},
		{name: "alone", rows: aloneRows(), each: true},
	}
}

// outsideRows try to write outside the allowed places.
func outsideRows() []row {
	rows := []row{
		{name: "append-to-.bashrc", script: `echo evil >> $H/.bashrc`, touches: "home/.bashrc", landlock: "held"},
		{name: "a-new-file-of-the-shell", script: `echo evil > $H/.zshenv`, touches: "home/.zshenv", landlock: "held"},
		{name: "the-profile-of-a-login-shell", script: `echo "$F" > $H/.bash_profile`, touches: "home/.bash_profile", landlock: "held"},
		{name: "a-new-settings-directory", script: `mkdir -p $H/.newtool && echo x > $H/.newtool/rc`, touches: "home/.newtool", landlock: "held"},
		{name: "a-program-of-the-user-s", script: `hook $H/bin/tool`, touches: "home/bin/tool", landlock: "held"},
		{name: "a-new-program-called-git", script: `hook $H/.local/bin/git`, touches: "home/.local/bin/git", landlock: "held"},
		{name: "a-go-program", script: `hook $H/go/bin/tool`, touches: "home/go/bin/tool", landlock: "held"},
		{name: "a-service-of-systemd", script: `echo x > $H/.config/systemd/user/x.service`, touches: "home/.config/systemd", landlock: "held"},
		{name: "autostart", script: `echo x > $H/.config/autostart/y.desktop`, touches: "home/.config/autostart", landlock: "held"},
		{name: "authorized-keys", script: `echo x > $H/.ssh/authorized_keys`, touches: "home/.ssh/authorized_keys", landlock: "held"},
		{name: "settings-of-ssh", script: `printf 'Match exec "%s"\n' "$F" > $H/.ssh/config`, touches: "home/.ssh/config", landlock: "held"},
		{name: "memory-of-claude", script: `echo x >> $H/.claude/CLAUDE.md`, touches: "home/.claude/CLAUDE.md", landlock: "held"},
		{name: "settings-of-codex", script: `echo x >> $H/.codex/config.toml`, touches: "home/.codex", landlock: "held"},
		{name: "global-settings-of-git", script: `git config --global core.fsmonitor "$F"`, touches: "home/.gitconfig", landlock: "held"},
		{name: "other-global-settings-of-git", script: `echo x > $H/.config/git/config`, touches: "home/.config/git", landlock: "held"},
		{name: "a-cache-that-the-shell-runs", script: `echo x > $H/.cache/p10k.zsh`, touches: "home/.cache/p10k.zsh", landlock: "held"},
		{name: "settings-of-the-editor", script: `echo x > $H/.vimrc`, touches: "home/.vimrc", landlock: "held"},
		{name: "a-plain-file-of-the-home", script: `echo x > $H/notes.txt`, touches: "home/notes.txt", landlock: "held"},
		{name: "write-a-file-outside", script: `echo x > $OUT/f`, landlock: "held"},
		{name: "append-to-a-file-outside", script: `echo x >> $OUT/f`, landlock: "held"},
		{name: "truncate-a-file-outside", script: `truncate -s 0 $OUT/f`, landlock: "held"},
		{name: "remove-a-file-outside", script: `rm $OUT/f`, landlock: "held"},
		{name: "rename-a-file-outside", script: `mv $OUT/f $OUT/g`, landlock: "held"},
		{name: "a-new-file-outside", script: `echo x > $OUT/new`, landlock: "held"},
		{name: "a-new-directory-outside", script: `mkdir $OUT/new`, landlock: "held"},
		{name: "remove-a-directory-outside", script: `rmdir $OUT/d`, landlock: "held"},
		{name: "a-link-outside", script: `ln -s x $OUT/l`, landlock: "held"},
		{name: "a-pipe-outside", script: `mkfifo $OUT/p`, landlock: "held"},
		{name: "a-hard-link-in-from-outside", script: `ln $OUT/f hard-in && echo x > hard-in`, landlock: "held"},
		{name: "a-hard-link-out", script: `ln f $OUT/hard`, landlock: "held"},
		{name: "move-a-file-out", script: `echo x > moved && mv moved $OUT/moved`, landlock: "held"},
		{name: "through-a-link", script: `ln -s $OUT through && echo x > through/f`, landlock: "held"},
		{name: "through-a-link-to-the-file", script: `ln -s $OUT/f tofile && echo x > tofile`, landlock: "held"},
		{name: "dot-dot-behind-a-link", script: `ln -s $OUT/d behind && echo x > behind/../f`, landlock: "held"},
		{name: "dot-dot", script: `echo x > ../../../outside/$ID/f`, landlock: "held"},
		{name: "exchange-with-a-file-outside", script: `echo x > mine && $A exchange mine $OUT/f`, landlock: "held"},
		{name: "through-the-root-of-pid-1", script: `echo x > /proc/1/root$OUT/f`, landlock: "held", unseen: true},
		{name: "through-its-own-root", script: `echo x > /proc/self/root$OUT/f`, landlock: "held"},
		{name: "through-the-root-of-another-process", script: `echo x > /proc/$HOSTPID/root$OUT/f`, landlock: "held"},
		{name: "through-the-directory-of-another-process", script: `echo x > /proc/$HOSTPID/cwd/outside/$ID/f`, landlock: "held"},
		{name: "through-its-parent", script: `echo x > /proc/$PPID/root$OUT/f`, landlock: "held"},
		{name: "mode-of-a-file-outside", script: `chmod 777 $OUT/f`, landlock: "open: changed"},
		{name: "mode-by-a-descriptor", script: `$A fchmod $OUT/f`, landlock: "open: changed"},
		{name: "mode-of-a-directory-outside", script: `chmod 777 $OUT/d`, landlock: "open: changed"},
		{name: "times-of-a-file-outside", script: `$A touch $OUT/f`, landlock: "open: changed"},
		{name: "attributes-of-a-file-outside", script: `$A xattr $OUT/f`, landlock: "open: changed"},
		{name: "attributes-by-a-descriptor", script: `$A fxattr $OUT/f`, landlock: "open: changed"},
		{name: "owner-of-a-file-outside", script: `chown 12345 $OUT/f`, landlock: "held", unseen: true},
		{name: "settings-of-a-repository-beside", script: `git -C ../other config core.fsmonitor "$F"`, touches: "home/src/other/.git/config", landlock: "held"},
		{name: "a-hook-of-a-repository-beside", script: `hook ../other/.git/hooks/post-checkout`, touches: "home/src/other/.git/hooks", landlock: "held"},
		{name: "a-hook-of-origin", script: `hook ../origin.git/hooks/pre-receive`, touches: "home/src/origin.git/hooks", landlock: "held"},
		{name: "a-file-of-a-linked-worktree", script: `echo x >> ../linked/f`, touches: "home/src/linked/f", landlock: "held"},
		{name: "the-git-file-of-a-linked-worktree", script: `echo gitdir: $W/docs > ../linked/.git`, touches: "home/src/linked/.git", landlock: "held"},
		{name: "settings-of-uwf", script: `set -- config set; uwf "$@" commands.sandbox.mode none || echo 'commands: {}' >> $H/.uwf/config.yaml`, after: `grep -q sandbox ~/.uwf/config.yaml && $F`, landlock: "held"},
		{name: "the-list-of-threads", script: `echo x >> $H/.uwf/threads.yaml`, after: `grep -q ^x ~/.uwf/threads.yaml && $F`, landlock: "held"},
		{name: "a-node-of-the-store", script: `for node in $H/.uwf/cas/nodes/*/*; do ! echo x >> $node || exit 0; done; false`, after: `uwf inbox >/dev/null || $F`, landlock: "held"},
		{name: "a-run-of-uwf", script: `mkdir $H/.uwf/runs/evil || echo x > $H/.uwf/locks/x`, after: `[ ! -e ~/.uwf/runs/evil ] || $F`, landlock: "held"},
		{name: "artifacts-of-another-run", script: `cd $H/.uwf/artifacts && mkdir evil || echo x > $H/.uwf/artifacts/x || mv "$UWF_ARTIFACTS_DIR" "$UWF_ARTIFACTS_DIR.moved"`,
			after: `[ -z "$(ls -d ~/.uwf/artifacts/evil ~/.uwf/artifacts/x ~/.uwf/artifacts/*.moved 2>/dev/null)" ] || $F`, landlock: "held"},
		{name: "a-session-of-an-agent", script: `echo x > $H/.uwf/sessions/s`, after: `grep -q canary ~/.uwf/sessions/s || $F`, landlock: "held"},
		{name: "a-workflow-beside", script: `mkdir -p ../.workflow && echo x > ../.workflow/x.yaml`, touches: "home/src/.workflow", landlock: "held"},
		{name: "a-file-that-is-set-id", script: `cp $A setid && chmod 4755 setid && [ -u setid ]`, after: `[ ! -u setid ] || $F`, landlock: "held"},
	}
	return rows
}

// readingRows try to read keys, and other processes' data.
func readingRows() []row {
	rows := []row{
		{name: "variables-of-uwf", script: `env > $GOT; grep -q canary $GOT`, landlock: "held", unseen: true},
		{name: "variables-of-its-parents", script: `p=$PPID; for i in 1 2; do cat /proc/$p/environ | tr '\0' '\n' | grep canary >> $GOT; p=$(sed -n 's/^PPid:.//p' /proc/$p/status); done; [ -s $GOT ]`, landlock: "held"},
		{name: "variables-of-another-process", script: `cat /proc/$HOSTPID/environ > $GOT`, landlock: "held"},
		{name: "a-descriptor-of-another-process", script: `cat /proc/$HOSTPID/fd/$HOSTFD > $GOT`, landlock: "held"},
		{name: "a-descriptor-of-another-process-by-pidfd", script: `$A getfd $HOSTPID $HOSTFD > $GOT`, landlock: "held"},
		{name: "memory-of-another-process", script: `$A vmread $HOSTPID $HOSTADDR > $GOT`, landlock: "held"},
		{name: "a-key-by-its-handle", script: `$A handle $H/.netrc $H > $GOT`, landlock: "held", unseen: true},
		{name: "a-key-through-another-s-root", script: `cat /proc/$HOSTPID/root$H/.netrc > $GOT`, landlock: "held"},
		{name: "a-key-through-pid-1", script: `cat /proc/1/root$H/.netrc > $GOT`, landlock: "held", unseen: true},
		{name: "a-key-through-a-link", script: `ln -s $H/.ssh keys && cat keys/id_ed25519 > $GOT`, landlock: "held"},
		{name: "a-key-by-a-hard-link", script: `ln $H/.netrc netrc && cat netrc > $GOT`, landlock: "held"},
		{name: "a-key-by-git", script: `git hash-object -w $H/.netrc && git cat-file -p $(git hash-object $H/.netrc) > $GOT`, landlock: "held"},
		{name: "a-key-by-git-diff", script: `git diff --no-index /dev/null $H/.netrc > $GOT; grep canary $GOT`, landlock: "held"},
		{name: "names-of-keys", script: `ls -A $H/.ssh | grep id_ed25519`, reach: true, landlock: "open: reached"},
		{name: "shared-memory-of-another-process", script: `cat /dev/shm/uwf-attack-$HOSTNAME_ > $GOT`, landlock: "held"},
		{name: "a-segment-of-another-process", script: `$A shm $HOSTKEY > $GOT`, landlock: "held"},
		{name: ".env-of-the-workspace", script: `cat .env > $GOT`, landlock: "open: read"},
		{name: "the-plan-of-the-box", script: `cat /proc/1/fd/* /proc/1/environ /proc/1/cmdline > $GOT`, only: "box"},
		{name: "passwords-of-the-machine", script: `[ "$(id -u)" = 0 ] && cat /etc/shadow`, reach: true, landlock: "held", landlockRoot: "open: reached", unseen: true},
	}
	for _, name := range secretFiles {
		rows = append(rows, row{name: "read-" + name, script: `cat $H/` + name + ` > $GOT`, landlock: "held"})
	}
	return rows
}
