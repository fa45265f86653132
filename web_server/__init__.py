"""The browser server: real web pages for agents, as JSON over HTTP.

It is a separate process with Flask routes and Chromium. Playwright runs on one event-loop thread.
`python -m web_server` starts it, and docs/web_server.md describes the protocol.
`web_server.contract` has the wire types and requires only pydantic.

Rooms, in import order: a room imports only rooms listed before it.

    errors            errors with their HTTP status
    quoting           quotes page text, so that it cannot imitate observations
    deadline          the time limit of one request
    javascript        loads the .js files of the rooms
    wire_types        tolerant field types of the wire
    contract          the wire types, shared with clients
    view              texts and observations in the form of the wire
    network           address policy and the filtering proxy
    chromium          Chromium processes
    settle            waiting until an action's effects have finished
    observe           the walk over a page and its text with ids
    session           one leased browser
    actions           actions on a page
    pool              browsers on lease
    operations        one request on one leased browser, with recovery
    api               HTTP routes, parsing, logs, metrics
    command_line      errors and exit codes of the commands
    install_chromium  python -m web_server.install_chromium
    __main__          python -m web_server
"""
