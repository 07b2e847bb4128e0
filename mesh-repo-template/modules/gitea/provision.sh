#!/bin/bash
# Called by gitmesh as `provision VERB FOLDER`. The folder holds one file for each value; what the server
# answers is written to FOLDER/answer. Every verb can be repeated. Nothing secret is ever an argument of
# curl: it reads its options from standard input.
set -euo pipefail

verb=$1
folder=$2
server=http://127.0.0.1:3000/api/v1

user=$(< "$folder/as")
token="${user}_$(< "$folder/slot")"

user_exists() {
    gitea admin user list | awk -v name="$user" '$2 == name { found = 1 } END { exit !found }'
}

make_user() {
    gitea admin user create --username "$user" --email "$user@noreply.localhost" \
        --random-password --must-change-password=false > /dev/null
}

# Only the user may remove a token, with a password; so it gets a new one that nobody keeps. Gitea takes that
# one as an argument only, where whoever may list the container's processes sees it for a moment.
remove_token() {
    local password
    password=$(head -c 30 /dev/urandom | base64 | tr -d '+/=')
    gitea admin user change-password --username "$user" --password "$password" \
        --must-change-password=false > /dev/null
    curl --silent --show-error --output /dev/null --write-out '%{http_code}' --config - \
        --request DELETE "$server/users/$user/tokens/$token" <<< "user = \"$user:$password\"" |
        grep -qx -e 204 -e 404
}

make_token() {
    gitea admin user generate-access-token --username "$user" --token-name "$token" \
        --scopes read:repository,write:issue --raw | tr -d '\n' > "$folder/answer/token"
}

case $verb in
    ensure)
        user_exists || make_user
        # A token is told once: if the answer was lost, it is made again.
        remove_token
        make_token
        ;;
    confirm)
        curl --silent --show-error --fail --output /dev/null --config - "$server/user" \
            <<< "header = \"Authorization: token $(< "$folder/secret")\""
        ;;
    retire) remove_token ;;
    remove) ;; # the user and what it made are data
    *)
        echo "gitea: no verb $verb" >&2
        exit 2
        ;;
esac
