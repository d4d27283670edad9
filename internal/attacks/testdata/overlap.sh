# The first child plants until the third one has begun and seen it; nothing is waited for longer
# than 5 s, since what one child plants another may not see at all.
git=$(git rev-parse --git-common-dir)
plant() {
	printf '#!/bin/sh\n%s\n' "$F" > "$git/hooks/pre-commit"; chmod 755 "$git/hooks/pre-commit"
	printf '#!/bin/sh\n%s\n' "$F" > "$git/modules/sub/hooks/post-commit"; chmod 755 "$git/modules/sub/hooks/post-commit"
	git config core.fsmonitor "$F"; git -C "$git/worktrees/linked" config core.fsmonitor "$F"
}
i=0
case $1 in
1) until [ -e "$git/objects/third" ] || [ $i = 50 ]; do plant; i=$((i+1)); sleep 0.1; done 2>/dev/null ;;
2) until [ -e "$git/hooks/pre-commit" ] || [ $i = 50 ]; do i=$((i+1)); sleep 0.1; done ;;
3) touch "$git/objects/third"; while [ -e "$git/hooks/pre-commit" ] && [ $i -lt 50 ]; do i=$((i+1)); sleep 0.1; done ;;
esac
true
