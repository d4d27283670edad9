# Files kept with steps: in place and in worktrees; undone, redone, applied; killed while files
# are restored, applied, or a worktree is made; redacted paths.
cat >edit.yaml <<'EOF'
name: edit
description: Changes files.
roles:
  first: { description: Edits., run: [sh, -c, 'echo first >>"$WORK/runs"; echo edited >>a; echo key >ignored; mkdir -p sub; echo new >sub/new'] }
  second: { description: Removes., run: [sh, -c, 'echo second >>"$WORK/runs"; rm a; for i in 1 2 3 4 5; do echo more >>f$i; done'] }
graph:
  $START: { _: first }
  first: { passed: second, failed: $END }
  second: { passed: $END, failed: $END }
EOF
cat >secret.yaml <<'EOF'
name: secret
description: Leaves a key.
roles:
  first: { description: Edits., run: [sh, -c, 'echo first >>"$WORK/runs"; echo kept >>c; mkdir -p keys; echo SECRET >keys/key; echo o >keys/other'] }
  second: { description: Makes one., run: [sh, -c, 'echo second >>"$WORK/runs"; echo new >>d'] }
graph:
  $START: { _: first }
  first: { passed: second, failed: $END }
  second: { passed: $END, failed: $END }
EOF
cat >many.yaml <<'EOF'
name: many
description: Changes many files.
roles:
  first: { description: Edits., run: [sh, -c, 'echo first >>"$WORK/runs"; for i in $(seq 20); do echo edited >>f$i; done'] }
graph:
  $START: { _: first }
  first: { passed: $END, failed: $END }
EOF
# repository makes one, and goes there.
repository() {
	mkdir "$WORK/work/$1"
	cd "$WORK/work/$1"
	git init -q
	printf 'text\n' >a
	printf 'b\n' >b
	echo ignored >.gitignore
	for i in $(seq 20); do echo "$i" >"f$i"; done
	git add .
	git commit -qm first
}
# killed runs uwf with a git that kills it: "half" in the middle of the files that are written
# to a work tree, "moved" once the branch has moved, "before" it does.
mkdir "$WORK/tmp/git"
cat >"$WORK/tmp/git/git" <<EOF
#!/bin/sh
git=$(command -v git)
EOF
cat >>"$WORK/tmp/git/git" <<'EOF'
case "$KILL $*" in
half*read-tree\ -m\ -u*) strace -qq -o /dev/null -e trace=unlink -e inject=unlink:signal=SIGKILL:when="$WHEN" "$git" "$@"; kill -9 $PPID ;;
before*update-ref\ -m*HEAD*) kill -9 $PPID ;;
moved*update-ref\ -m*HEAD*) "$git" "$@"; kill -9 $PPID ;;
*) exec "$git" "$@" ;;
esac
EOF
chmod 755 "$WORK/tmp/git/git"
killed() {
	KILL=$1 WHEN=2 PATH=$WORK/tmp/git:$PATH timeout -s KILL 30 uwf --quiet "${@:2}" >/dev/null 2>&1 && echo "$*: not killed" >&2
	sleep 0.3
	git status --porcelain | sed 4q
	ls .git | grep uwf || true
	ls "$UWF_HOME"/git/*/apply "$UWF_HOME"/runs/*/restore.json || true
}
repository here
run HERE run ../edit.yaml -p 'in place'
repository undone
run UNDONE run ../edit.yaml -p 'undone'
uwf --quiet thread undo "$(at UNDONE)" >/dev/null
repository restoring
run RESTORING run ../edit.yaml -p 'killed while files are restored'
killed half thread undo "$(at RESTORING)"
repository tree
run TREE run ../edit.yaml -p 'in a worktree' --workspace worktree
run OPEN thread start ../edit.yaml -p 'half way in a worktree' --workspace worktree
uwf --quiet thread step "$(at OPEN)" >/dev/null
echo mine >>"$UWF_HOME/worktrees/$(at OPEN)/b"
run APPLIED run ../many.yaml -p 'applied' --workspace worktree
uwf --quiet thread apply "$(at APPLIED)" >/dev/null
run FORK thread fork "$(at TREE)@1"
repository applying
run APPLYING run ../many.yaml -p 'killed while it is applied' --workspace worktree
killed half thread apply "$(at APPLYING)"
repository applying2
run APPLYING2 run ../many.yaml -p 'killed once the branch has moved' --workspace worktree
killed moved thread apply "$(at APPLYING2)"
repository applying3
run APPLYING3 run ../many.yaml -p "killed before the branch moves" --workspace worktree
killed before thread apply "$(at APPLYING3)"
repository conflict
run CONFLICT run ../many.yaml -p 'conflicts' --workspace worktree
echo other >>f3; git commit -qam other
repository making
uwf --quiet config set workspace.setup '["sh","-c","kill -9 $PPID"]' >/dev/null
timeout -s KILL 20 uwf --quiet thread start ../edit.yaml -p 'killed while its worktree is made' --workspace worktree >/dev/null 2>&1 || true
uwf --quiet config unset workspace.setup >/dev/null
repository redacted
run REDACTED run ../secret.yaml -p 'a key'
uwf --quiet thread export "$(at REDACTED)" --files -o "$WORK/work/with-key.uwfb" >/dev/null
uwf --quiet thread redact "$(at REDACTED)" --files keys/key >/dev/null
uwf --quiet thread export "$(at REDACTED)" --files -o "$WORK/work/redacted.uwfb" >/dev/null
repository moved
run MOVED run ../edit.yaml -p 'its repository moves' --workspace worktree
mv "$WORK/work/moved" "$WORK/work/elsewhere"
cd "$WORK/work"
uwf --quiet thread export "$(at HERE)" --files -o "$WORK/work/files.uwfb" >/dev/null
ls "$UWF_HOME"/runs/*/restore.json "$UWF_HOME"/worktrees
