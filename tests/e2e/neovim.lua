-- Drives a headless Neovim as a person would: open, save a bug into a kernel, read the diagnostic,
-- apply a code action. Prints "ok NAME" or "not ok NAME", then quits with 0 or 1.
-- Environment: KF_COMMAND (JSON array that starts the server), KF_FILE (a private copy of scale.cu).
local failures = 0
local function check(name, passed, detail)
  if not passed then failures = failures + 1 end
  io.stdout:write((passed and 'ok ' or 'not ok ') .. name .. (detail and ('  # ' .. detail) or '') .. '\n')
end
local function finish()
  vim.cmd(failures == 0 and 'qall!' or 'cquit 1')
end

local json = vim.json or { decode = vim.fn.json_decode }
local command = json.decode(os.getenv('KF_COMMAND'))
local file = os.getenv('KF_FILE')
local messages, progress_seen = {}, 0
vim.lsp.handlers['window/showMessage'] = function(_, result)
  table.insert(messages, result.message)
  return vim.NIL
end
local show_progress = vim.lsp.handlers['$/progress']
vim.lsp.handlers['$/progress'] = function(err, result, ctx, config)
  progress_seen = progress_seen + 1
  return show_progress(err, result, ctx, config)
end

vim.cmd('edit ' .. vim.fn.fnameescape(file))
local buffer = vim.api.nvim_get_current_buf()
local id = vim.lsp.start_client({
  name = 'kernel-forge',
  cmd = command,
  root_dir = vim.fn.fnamemodify(file, ':h'),
  get_language_id = function() return 'cuda' end,
})
vim.lsp.buf_attach_client(buffer, id)
check('initialized', vim.wait(20000, function()
  local client = vim.lsp.get_client_by_id(id)
  return client and client.initialized
end, 20))
local client = vim.lsp.get_client_by_id(id)
local document = { uri = vim.uri_from_bufnr(buffer) }
local function request(method, params)
  local answers = vim.lsp.buf_request_sync(buffer, method, params, 20000)
  local answer = answers and answers[id]
  return answer and answer.result, answer and answer.error
end
local function line_of(text)
  for number, line in ipairs(vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) do
    if line:find(text, 1, true) then return number - 1, line end
  end
end
local function diagnostics_with(code)
  return vim.tbl_filter(function(d)
    local lsp = d.user_data and d.user_data.lsp or {}
    return lsp.code == code
  end, vim.diagnostic.get(buffer))
end
local function describe()
  return vim.inspect(vim.tbl_map(function(d) return { d.lnum, d.col, d.message } end, vim.diagnostic.get(buffer))):gsub('%s+', ' ')
end
local function lens_titles()
  local lenses = request('textDocument/codeLens', { textDocument = document }) or {}
  local titles = {}
  for _, lens in ipairs(lenses) do table.insert(titles, lens.command and lens.command.title or '') end
  return table.concat(titles, ' | ')
end

-- vim.wait may end early when its condition itself waits for an answer, so this asks between the waits.
local function eventually(milliseconds, test)
  local deadline = vim.loop.hrtime() + milliseconds * 1e6
  repeat
    if test() then return true end
    vim.wait(100, function() return false end)
  until vim.loop.hrtime() > deadline
  return false
end

-- A right kernel, saved: verified, no error.
vim.cmd('write')
check('verified on save', eventually(60000, function()
  local titles = lens_titles()
  return titles:find('verified') and not titles:find('not verified')
end), lens_titles())
check('says emulated', lens_titles():find('emulated') ~= nil, lens_titles())
check('no error on a right kernel', #vim.diagnostic.get(buffer, { severity = vim.diagnostic.severity.ERROR }) == 0, describe())
check('progress was shown', progress_seen >= 2, tostring(progress_seen))

-- A planted bug, saved: a diagnostic on the wrong line.
local number, line = line_of('y[i] = a * x[i];')
vim.api.nvim_buf_set_lines(buffer, number, number + 1, false, { (line:gsub('a %* x%[i%]', 'a + x[i]')) })
vim.cmd('write')
local arrived = vim.wait(60000, function() return #diagnostics_with('KF301') > 0 end, 50)
check('diagnostic for the bug', arrived, describe())
local found = diagnostics_with('KF301')[1] or {}
check('on the wrong line', found.lnum == number, vim.inspect(found.lnum) .. ' wanted ' .. number)
check('starts inside the line', (found.col or 99) <= 4 and (found.end_lnum == number), vim.inspect({ found.col, found.end_lnum }))

-- Hover on the kernel's name tells the verdict.
local name_line, name_text = line_of('__global__ void scale(')
local hover = request('textDocument/hover', { textDocument = document, position = { line = name_line, character = name_text:find('scale', 1, true) } })
check('hover', hover ~= nil and vim.inspect(hover.contents):find('scale') ~= nil)

-- A code action: draft a spec block for the other kernel.
local shift_line, shift_text = line_of('__global__ void shift(')
local at = { line = shift_line, character = shift_text:find('shift', 1, true) }
local actions = request('textDocument/codeAction', { textDocument = document, range = { start = at, ['end'] = at }, context = { diagnostics = {} } }) or {}
local draft
for _, action in ipairs(actions) do
  if action.title:find('Add spec block', 1, true) then draft = action end
end
check('code action offered', draft ~= nil, vim.inspect(vim.tbl_map(function(a) return a.title end, actions)))
if draft then
  if not draft.edit then draft = request('codeAction/resolve', draft) end
  vim.lsp.util.apply_workspace_edit(draft.edit, client.offset_encoding)
  check('block inserted above the kernel', line_of('kernel = "shift"') ~= nil and line_of('kernel = "shift"') < line_of('__global__ void shift('))
  check('drafted block has no spec error', vim.wait(5000, function() return #diagnostics_with('KF106') == 0 end, 50), describe())
end

-- Mend the bug: the diagnostic goes.
number, line = line_of('y[i] = a + x[i];')
vim.api.nvim_buf_set_lines(buffer, number, number + 1, false, { (line:gsub('a %+ x%[i%]', 'a * x[i]')) })
check('stale diagnostic leaves the edited line at once', vim.wait(5000, function() return #diagnostics_with('KF301') == 0 end, 20), describe())
vim.cmd('write')
check('verified again', eventually(60000, function()
  local titles = lens_titles()
  return titles:find('verified') and not titles:find('wrong') and not titles:find('running')
end), lens_titles())
check('no message boxes', #messages == 0, table.concat(messages, '; '))

vim.lsp.stop_client(id)
check('clean stop', vim.wait(8000, function() return vim.lsp.client_is_stopped(id) end, 20))
finish()
