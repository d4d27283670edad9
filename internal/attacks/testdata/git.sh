# Runs git commands in a clone, and notes the status of each in $LIST.
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000' GIT_EDITOR=true
t() { said=$("$@" 2>&1 </dev/null); s=$?
	case $said in *[Ff]atal*|*[Ee]rror*|*[Ww]arning:*|*"ould not"*|*[Uu]nable*) s="$s complains" ;; esac
	printf '%s\t%s\n' "$*" "$s" >> "$LIST"; }
echo 1 >> f; t git add f; t git commit -qm one
t git checkout -q -b topic; echo 2 >> f; t git commit -qam two; t git checkout -q -
t git branch b1; t git branch -m b1 b2; t git branch -D b2
t git checkout -q -b x origin/x; t git rev-parse --abbrev-ref HEAD; t git checkout -q main
t git switch -q x2; t git checkout -q main
t git branch --set-upstream-to=origin/main
t git merge -q --no-edit topic; t git rebase -q topic; t git cherry-pick --quit
echo s >> f; t git stash -q; t git stash pop -q; t git checkout -q f
t git tag v1; t git tag -a v2 -m x; t git fetch -q origin; t git pull -q --ff-only origin main
t git push -q origin HEAD:refs/heads/p1; t git push -q -u origin HEAD:p2
t git worktree add -q wt -b wtb; echo w > wt/w; t git -C wt add w; t git -C wt commit -qm w
t git worktree remove --force wt; t git worktree prune
t git gc -q; t git gc -q --auto; t git repack -q -a -d; t git pack-refs --all; t git commit-graph write; t git reflog expire --all
t git fsck --no-progress; t git prune; t git maintenance run --quiet
t git config user.email b@example.org; t git config --unset x.y; t git remote add second https://second.example/x; t git remote rename second third
t git notes add -m n; t git bisect start; t git bisect reset; t git reset -q --hard HEAD~1; t git clean -fdq
t git sparse-checkout set d; t git sparse-checkout disable
t git submodule add -q ../lib sm; t git submodule update --init -q
t git replace HEAD HEAD~1; t git replace -d $(git rev-parse HEAD); t git update-index --skip-worktree f; t git update-index --no-skip-worktree f
t git gc --prune=now -q; t git init -q; t git init -q sub1; t git clone -q ../origin.git cl
t git commit -qm three; t git rebase -q -i --exec true HEAD~1; t git archive -o got/a.tar HEAD; t git format-patch -1 -q; t git status -s
